package observe

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// maxStatementBytes is how long a statement in a log may be, in bytes: the proxy accepts no longer ones.
const maxStatementBytes = 4 << 20

// EachStatement calls f with each statement that log_statement or log_min_duration_statement has written to a
// PostgreSQL log. It detects the format (stderr, csvlog or jsonlog) by the first line.
func EachStatement(in io.Reader, f func(sql string) error) error {
	r := bufio.NewReaderSize(in, 64<<10)
	head, err := r.Peek(4 << 10)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	switch {
	case bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")):
		return readJSONLog(r, f)
	case csvLine.Match(line):
		return readCSVLog(r, f)
	default:
		return readTextLog(r, f)
	}
}

// csvLine matches the start of a line of csvlog: the time, then the user in quotes or nothing.
var csvLine = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [^,]*,("[^"]*")?,("[^"]*")?,\d*,`)

// loggedMessage matches a message that contains a statement.
var loggedMessage = regexp.MustCompile(
	`(?s)^(?:duration: [0-9.]+ ms  )?(?:statement|execute [^:]*|execute fetch from [^:]*): (.*)$`)

func loggedStatement(message string) (string, bool) {
	m := loggedMessage.FindStringSubmatch(message)
	if m == nil {
		return "", false
	}
	return m[1], true
}

func readJSONLog(r io.Reader, f func(string) error) error {
	d := json.NewDecoder(r)
	for {
		var line struct {
			Message string `json:"message"`
		}
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if sql, ok := loggedStatement(line.Message); ok {
			if err := f(sql); err != nil {
				return err
			}
		}
	}
}

// messageField is the index of the message among the fields of a csvlog line.
const messageField = 13

func readCSVLog(r io.Reader, f func(string) error) error {
	c := csv.NewReader(r)
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if len(record) <= messageField {
			continue
		}
		if sql, ok := loggedStatement(record[messageField]); ok {
			if err := f(sql); err != nil {
				return err
			}
		}
	}
}

// logLine matches the part of a stderr line before the message, whatever log_line_prefix is.
var logLine = regexp.MustCompile(
	`(?:^|[\s\]>:])(?:LOG|DETAIL|HINT|ERROR|STATEMENT|CONTEXT|WARNING|NOTICE|FATAL|PANIC|INFO|DEBUG\d?):  `)

// readTextLog reads a stderr log. PostgreSQL begins the continuation lines of a message with a tab.
func readTextLog(r io.Reader, f func(string) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxStatementBytes)
	var message strings.Builder
	isOpen := false
	end := func() error {
		if !isOpen {
			return nil
		}
		isOpen = false
		sql, ok := loggedStatement(message.String())
		message.Reset()
		if !ok {
			return nil
		}
		return f(sql)
	}
	for in.Scan() {
		line := in.Text()
		if continuation, isContinued := strings.CutPrefix(line, "\t"); isContinued {
			if isOpen && message.Len() < maxStatementBytes {
				message.WriteString("\n" + continuation)
			}
			continue
		}
		if err := end(); err != nil {
			return err
		}
		if match := logLine.FindStringIndex(line); match != nil && strings.HasSuffix(strings.TrimRight(line[:match[1]],
			" "), "LOG:") {
			isOpen = true
			message.WriteString(line[match[1]:])
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	return end()
}
