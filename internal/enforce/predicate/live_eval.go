package predicate

import (
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// WithLiveAttributes returns the world with the values of live attributes, as the reference model computes them. claims
// has the values that the session claims, by the names of attributes.
func (w World) WithLiveAttributes(lives []LiveAttribute, claims map[string]string) World {
	w.Attributes = maps.Clone(w.Attributes)
	for _, l := range lives {
		delete(w.Attributes, l.Name)
	}
	for _, l := range lives {
		if value, ok := l.valueIn(w, claims); ok {
			w.Attributes[l.Name] = value
		}
	}
	return w
}

func (l LiveAttribute) valueIn(w World, claims map[string]string) (string, bool) {
	switch {
	case l.Setting != "":
		claim := claims[l.Name]
		if l.Type == "pg_catalog.uuid" {
			claim = strings.ToLower(claim)
		}
		return claim, l.isWellFormed(claim) && l.isConfirmed(claim, w)
	case l.Table != nil:
		var found []Row
		for _, row := range w.Tables[l.Table.Name] {
			if Eval(l.Rows, row, w) {
				found = append(found, row)
			}
		}
		if len(found) != 1 {
			return "", false
		}
		value, ok := found[0][l.Column]
		return value, ok
	case l.Expr != nil:
		for a := range requiredAttributes(SQL{Expr: l.Expr}) {
			if _, ok := w.Attributes[a]; !ok {
				return "", false
			}
		}
		return l.formatValue(evalExpr(l.Expr, Row{}, w))
	}
	return "", false
}

var uuidClaim = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func (l LiveAttribute) isWellFormed(claim string) bool {
	switch l.Type {
	case "pg_catalog.uuid":
		return uuidClaim.MatchString(claim)
	case "pg_catalog.int4", "pg_catalog.int8":
		bits := map[bool]int{true: 32, false: 64}[l.Type == "pg_catalog.int4"]
		n, err := strconv.ParseInt(claim, 10, bits)
		return err == nil && strconv.FormatInt(n, 10) == claim
	default:
		return claim != "" && len(claim) <= MaxClaimBytes
	}
}

func (l LiveAttribute) isConfirmed(claim string, w World) bool {
	if l.Table != nil {
		w.Attributes = maps.Clone(w.Attributes)
		w.Attributes[ClaimedValue] = claim
		return slices.ContainsFunc(w.Tables[l.Table.Name], func(row Row) bool { return Eval(l.Rows, row, w) })
	}
	for _, a := range l.MustEqual {
		value, ok := w.Attributes[a.Name]
		if ok && (value == claim || isListType(a.Type) && slices.Contains(nonNullElements(value), claim)) {
			return true
		}
	}
	return slices.Contains(l.AllowedValues, claim)
}

// formatValue returns a value as text, in the attribute's type. It returns false for NULL and for a value that does not
// fit.
func (l LiveAttribute) formatValue(v evalValue) (string, bool) {
	switch {
	case !v.notNull:
		return "", false
	case v.number != nil:
		bits := map[string]uint{"pg_catalog.int4": 31, "pg_catalog.int8": 63}[l.Type]
		limit := new(big.Int).Lsh(big.NewInt(1), bits)
		n := v.number.Num()
		fits := v.number.IsInt() && n.Cmp(limit) < 0 && n.Cmp(new(big.Int).Neg(limit)) >= 0
		return n.String(), fits
	case l.Kind == Bool:
		return strconv.FormatBool(v.bool), true
	default:
		return v.text, true
	}
}
