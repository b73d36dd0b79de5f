package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

type auditExportCmd struct {
	auditFilter
	Format string `enum:"jsonl,ocsf" default:"jsonl" help:"jsonl: the records as they are. ocsf: events of OCSF 1.3, class Datastore Activity. Default: jsonl."`
	After  uint64 `placeholder:"SEQ" help:"Only records after this number."`
	Resume string `placeholder:"FILE" help:"Go on after the number in this file, and leave there how far it came."`
}

func (auditExportCmd) Help() string {
	return `Writes records to stdout, and verifies the chain as it goes: ` +
		`what is exported was not changed. docs/reference/audit.md says what becomes of each
member in OCSF. Exit code 1 if the chain does not hold; what comes before that place has been written.

  pgconsent audit export --after 12000 > records.jsonl
  pgconsent audit export --format ocsf --resume shipped.seq >> events.jsonl`
}

func (x auditExportCmd) Run(s *session) error {
	c, err := s.auditConfig()
	if err != nil {
		return err
	}
	if x.Resume != "" {
		if x.After > 0 {
			return usageError{errors.New("--after and --resume say the same: choose one")}
		}
		text, err := os.ReadFile(x.Resume)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			if x.After, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err != nil {
				return fmt.Errorf("--resume: %s does not hold the number of a record", x.Resume)
			}
		}
	}
	if err := x.prepare(s, c); err != nil {
		return err
	}
	options, _, err := s.verifyOptions(c.Audit, "")
	if err != nil {
		return err
	}
	options.Progress = s.newProgress("read").report
	out := bufio.NewWriterSize(s.out, 1<<16)
	export := exporter{recordFilter: recordFilter{x.auditFilter, map[uint64]bool{}}, out: out, afterRecord: x.After,
		usesOCSF: x.Format == "ocsf", sessionAddresses: map[string]string{}, pendingDecisions: map[uint64]auditRecord{}}
	err = s.withAuditSource(c, c.Audit, func(source audit.Source) error {
		report, err := options.Read(source, export.addRecord)
		for _, t := range report.Removed {
			if t.Last > x.After {
				fmt.Fprintf(s.err, "pgconsent: %s\n", t)
			}
		}
		return err
	})
	if e := out.Flush(); e != nil {
		return e
	}
	if x.Resume != "" && export.lastRead > x.After {
		err = errors.Join(err, replaceFile(x.Resume, strconv.FormatUint(export.lastRead, 10)+"\n"))
	}
	return err
}

// replaceFile replaces a file atomically: after a crash, the file has either the old text or the new text.
func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// exporter writes the selected records to a file or to stdout.
type exporter struct {
	recordFilter
	out              io.Writer
	afterRecord      uint64 // the export begins after the record with this number
	lastRead         uint64 // the number of the last record that was read
	usesOCSF         bool
	sessionAddresses map[string]string      // the client's address of each open session
	pendingDecisions map[uint64]auditRecord // the decisions whose outcomes have not been read yet
}

func (x *exporter) addRecord(r audit.Record) error {
	e, err := readAuditRecord(r)
	if err != nil {
		return err
	}
	x.lastRead = r.Seq
	switch {
	case e.Kind == audit.KindSession && e.Event == "open":
		x.sessionAddresses[e.Session] = e.Remote
	case e.Kind == audit.KindDecision && x.usesOCSF:
		x.pendingDecisions[e.Seq] = e
	}
	if x.chooses(e) && r.Seq > x.afterRecord {
		if x.usesOCSF {
			err = x.writeEvent(e, r)
		} else {
			_, err = x.out.Write(r.Line)
		}
	}
	switch {
	case e.Kind == audit.KindSession && e.Event != "open":
		delete(x.sessionAddresses, e.Session)
	case e.Kind == audit.KindOutcome:
		delete(x.pendingDecisions, e.Decision)
	}
	return err
}

// Numbers of the event class and of the activities in OCSF (Open Cybersecurity Schema Framework).
const (
	// the number of the class Datastore Activity
	ocsfClass                                                            = 6005
	ocsfUpdate, ocsfConnect, ocsfQuery, ocsfWrite, ocsfDelete, ocsfOther = 2, 3, 4, 5, 7, 99
)

func ocsfActivity(e auditRecord) (int, string) {
	switch e.Kind {
	case audit.KindSession:
		switch e.Event {
		case "open", "refused":
			return ocsfConnect, "Connect"
		default:
			return ocsfOther, "Session " + e.Event
		}
	case audit.KindDecision:
		switch e.Tag {
		case "INSERT", "COPY FROM":
			return ocsfWrite, "Write"
		case "UPDATE", "MERGE":
			return ocsfUpdate, "Update"
		case "DELETE":
			return ocsfDelete, "Delete"
		default:
			return ocsfQuery, "Query"
		}
	case audit.KindCall:
		if e.Written {
			return ocsfUpdate, "Update"
		}
		return ocsfQuery, "Query"
	default:
		return ocsfOther, strings.ToUpper(e.Kind[:1]) + e.Kind[1:]
	}
}

// writeEvent writes a record as an OCSF event. It leaves out query_info, which requires the text of the query: records
// do not contain the text. The statement's fingerprint is among the unmapped members.
func (x *exporter) writeEvent(e auditRecord, r audit.Record) error {
	decision := e
	if d, ok := x.pendingDecisions[e.Decision]; ok && e.Kind == audit.KindOutcome {
		decision = d
	}
	activity, name := ocsfActivity(decision)
	status := 1
	if e.Verdict == "deny" || e.Outcome != "" && e.Outcome != audit.OutcomeDone ||
		e.SQLState != "" && e.SQLState != "00000" || e.Kind == audit.KindRecovery {
		status = 2
	}
	severity := map[int]int{1: 1, 2: 2}[status]
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.Line, &members); err != nil {
		return err
	}
	for _, mappedName := range []string{"v", "seq", "time", "kind", "session", "agent", "accessed_by", "database",
		"sqlstate", "reason", "remote", "hash", "on_behalf_of", "code"} {
		delete(members, mappedName)
	}
	source := map[string]any{"name": "unknown"}
	if host, port, err := net.SplitHostPort(firstNonEmpty(e.Remote, x.sessionAddresses[e.Session])); err == nil &&
		host != "" {
		source = map[string]any{"ip": host}
		if n, err := strconv.Atoi(port); err == nil {
			source["port"] = n
		}
	}
	user := map[string]any{"name": firstNonEmpty(decision.Agent, decision.By, "unknown"), "type_id": 3, "type": "System"}
	switch e.Role {
	case "subject":
		user["type_id"], user["type"] = 1, "User"
	case "admin", "operator":
		user["type_id"], user["type"] = 2, "Admin"
	}
	actor := map[string]any{"user": user}
	if e.Session != "" {
		actor["session"] = map[string]any{"uid": e.Session}
	}
	if decision.OnBehalfOf != "" {
		user["uid_alt"] = decision.OnBehalfOf
	}
	event := map[string]any{
		"category_uid": 6, "category_name": "Application Activity", "class_uid": ocsfClass, "class_name": "Datastore Activity",
		"activity_id": activity, "activity_name": name, "type_uid": ocsfClass*100 +
			activity, "type_name": "Datastore Activity: " + name,
		"time": e.Time.UnixMilli(), "severity_id": severity, "severity": map[int]string{1: "Informational", 2: "Low"}[severity],
		"status_id": status, "status": map[int]string{1: "Success", 2: "Failure"}[status],
		"actor": actor, "src_endpoint": source,
		"database": map[string]any{"name": firstNonEmpty(decision.Database, "unknown"), "type_id": 1,
			"type": "Relational"}, "type_id": 1, "type": "Database",
		"metadata": map[string]any{
			"version": "1.3.0", "product": map[string]any{
				"name": "pgconsent", "vendor_name": "pgconsent"}, "log_name": "audit", "log_version": strconv.Itoa(r.Version),
			"sequence": r.Seq, "uid": r.Hash, "event_code": e.Kind,
		},
	}
	if code := firstNonEmpty(e.SQLState, e.Code); code != "" {
		event["status_code"] = code
	}
	if e.Reason != "" {
		event["status_detail"] = e.Reason
	}
	if len(decision.Tables) == 1 {
		event["table"] = map[string]any{"name": decision.Tables[0].Name}
	}
	if len(members) > 0 {
		event["unmapped"] = members
	}
	encoder := json.NewEncoder(x.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(event)
}

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
