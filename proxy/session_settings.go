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

// PostgreSQL tells best what a client has set: SET, set_config and what undoes them need not be followed. So where a
// statement may have changed settings, their values are read before the connection passes to another session.

const (
	settingsName = verdict.SealStatement + "_settings"
	settingsText = "SELECT pg_catalog.json_object_agg(n, pg_catalog.current_setting(n, true)) FROM pg_catalog.unnest($1) AS n"
)

// initialSettingsQuery reads the settings with which a connection begins.
func initialSettingsQuery(names []string) string {
	return "SELECT pg_catalog.json_object_agg(n, pg_catalog.current_setting(n, true)) FROM pg_catalog.unnest(ARRAY['" +
		strings.Join(names, "', '") + "']::pg_catalog.text[]) AS n"
}

// decodeSettings reads the result of such a query. A setting that nobody has set yet has the value "".
func decodeSettings(value []byte) (map[string]string, error) {
	out := map[string]string{}
	if value == nil {
		return out, nil
	}
	return out, json.Unmarshal(value, &out)
}

// settingsEntry is the entry of the Execute by which the proxy reads the settings.
type settingsEntry struct {
	entryBase

	value []byte // the value of the result; nil: it was too long
}

func (e *settingsEntry) appendRefused(dst []byte) []byte { return e.refusal.execute(dst) }

func (e *settingsEntry) handleAnswer(a *answers, typ byte, _ int) (isExpected bool, err *sqlstate.Error) {
	if typ != 'C' { // CommandComplete; the DataRow is read whole
		return false, nil
	}
	a.succeed()
	return true, nil
}

// takeRow takes the one DataRow, of one column.
func (e *settingsEntry) takeRow(body []byte, missing int) {
	if missing == 0 && len(body) > 6 {
		e.value = bytes.Clone(body[6:])
	}
}

// readSettings reads the settings of the session, before its connection is given back. It has the turn. A session whose
// settings cannot be read keeps its connection.
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

// currentSettings asks the server for the values of all settings that the client may have changed; nil: they cannot be
// told.
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
