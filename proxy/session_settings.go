package proxy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// For pooled connections the proxy does not track SET, set_config and their rollback. Instead, after a statement that
// may have changed settings, it reads their values from PostgreSQL before another session can get the connection.

const (
	settingsName = verdict.SealStatement + "_settings"
	settingsText = "SELECT pg_catalog.json_object_agg(n, pg_catalog.current_setting(n, true)) FROM pg_catalog.unnest($1) AS n"
)

// initialSettingsQuery returns a query that reads the values of these settings at a connection's start.
func initialSettingsQuery(names []string) string {
	return "SELECT pg_catalog.json_object_agg(n, pg_catalog.current_setting(n, true)) FROM pg_catalog.unnest(ARRAY['" +
		strings.Join(names, "', '") + "']::pg_catalog.text[]) AS n"
}

// decodeSettings decodes the result of initialSettingsQuery or settingsText: a JSON object of names and values. A
// setting that nobody has set yet has the value "".
func decodeSettings(value []byte) (map[string]string, error) {
	out := map[string]string{}
	if value == nil {
		return out, nil
	}
	return out, json.Unmarshal(value, &out)
}

// settingsEntry is the entry of the Execute by which the proxy reads the session's settings.
type settingsEntry struct {
	entryBase

	value []byte // the result's value; nil: none has come, or it was too long
}

func (e *settingsEntry) appendRefused(dst []byte) []byte { return e.refusal.execute(dst) }

func (e *settingsEntry) handleAnswer(a *answers, typ byte, _ int) (isExpected bool, err *sqlstate.Error) {
	if typ != 'C' { // CommandComplete; the DataRow is read whole
		return false, nil
	}
	a.succeed()
	return true, nil
}

// takeRow stores the value of the result's only row and column, unless bytes of it are missing.
func (e *settingsEntry) takeRow(body []byte, missing int) {
	if missing == 0 && len(body) > 6 {
		e.value = bytes.Clone(body[6:])
	}
}

// readSettings reads the session's settings from the server before its connection returns to the pool. If they cannot
// be read, the session keeps its connection. The goroutine that runs it has the turn (see [retryState]).
func (r *requests) readSettings() {
	defer r.leaveTurn()
	defer r.recoverPanic()
	r.pooling.settingsTouched = false
	r.ledger.setStaging(true)
	values, err := r.currentSettings()
	if err != nil {
		r.conclude(err)
		return
	}
	if values == nil {
		r.ledger.keepConnection()
	}
	r.pooling.settings = map[string]string{}
	for name, value := range values {
		initial, isExpected := r.connection.initial[name]
		if !isExpected {
			initial = r.connector.settings[name]
		}
		if value != initial {
			r.pooling.settings[name] = value
		}
	}
	r.connection.settings = r.pooling.settings
	r.ledger.setStaging(false)
}

// currentSettings asks the server for the values of all settings that the client may have changed. It returns nil if
// they could not be read.
func (r *requests) currentSettings() (map[string]string, error) {
	var names []string
	for _, name := range slices.Concat(r.connector.upstream.Settings, slices.Sorted(maps.Keys(r.pooling.namedSettings))) {
		names = append(names, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name)+`"`)
	}
	list := "{" + strings.Join(names, ",") + "}"
	parameters := []byte{0, 0, 0, 1} // one parameter, in text format
	parameters = binary.BigEndian.AppendUint32(parameters, uint32(len(list)))
	parameters = append(append(parameters, list...), 0, 0)
	textArray := []byte{0, 1, 0, 0, 0x03, 0xf1} // the OID of text[] is 1009
	read := &settingsEntry{}
	code, err := r.sendProxyMessages([]entry{&closeEntry{object: 'S'}, &parseEntry{}, &bindEntry{}, read},
		appendOwnStatement(nil, settingsName, settingsText, textArray, parameters))
	switch {
	case err != nil:
		return nil, err
	case code != "" || read.value == nil:
		return nil, nil
	}
	values, err := decodeSettings(read.value)
	if err != nil {
		return nil, nil
	}
	return values, nil
}
