package config

import (
	"errors"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Audit has the section audit, which says how and where decisions are recorded.
type Audit struct {
	Mode      string `yaml:"mode"`      // strict, buffered or off: whether a statement waits until its record is durable
	Sink      string `yaml:"sink"`      // where records are stored: file or database
	File      string `yaml:"file"`      // folder of the records
	Database  string `yaml:"database"`  // name of the configured database whose table has the records
	Chain     string `yaml:"chain"`     // name of this proxy's chain of records in that table
	Key       string `yaml:"key"`       // file with the key for the codes in records; serve creates it
	Anchor    string `yaml:"anchor"`    // file with the number and hash of the newest record
	Rotate    Rotate `yaml:"rotate"`    // when a new segment begins
	Retention string `yaml:"retention"` // how long records are stored; "": forever
}

// Rotate says when a new segment of the audit begins.
type Rotate struct {
	Size string `yaml:"size"` // size of a full segment, such as 64MiB
	Age  string `yaml:"age"`  // age of a full segment, such as 24h; "": the age does not matter
}

// Smallest values that the configuration accepts.
const (
	minSegment   = 64 << 10
	minRetention = 24 * time.Hour
)

// SegmentBounds returns the size and the age at which a segment is full, and how long it is stored. [Load] has checked
// the values; 0 means no limit.
func (a Audit) SegmentBounds() (size int64, age, retention time.Duration) {
	size, _ = parseSize(a.Rotate.Size)
	if a.Rotate.Age != "" {
		age, _ = parseDuration(a.Rotate.Age)
	}
	if a.Retention != "" {
		retention, _ = parseDuration(a.Retention)
	}
	return size, age, retention
}

// Values of the key audit.sink.
const (
	SinkFile     = "file"
	SinkDatabase = "database"
)

// ReportLog returns the settings of a second log, which records the making of reports about persons. It is separate
// because pgconsent serve has the first log open.
func (a Audit) ReportLog() Audit {
	a.File = strings.TrimRight(a.File, "/") + "-reports"
	a.Anchor = strings.TrimSuffix(a.Anchor, anchorSuffix) + "-reports" + anchorSuffix
	if a.Sink == SinkDatabase {
		a.Chain += reportsSuffix
	}
	a.Mode, a.Retention, a.Rotate.Age = "strict", "", ""
	return a
}

// IsReportLog reports whether the settings come from [Audit.ReportLog]. It is for an audit in a database only.
func (a Audit) IsReportLog() bool { return strings.HasSuffix(a.Chain, reportsSuffix) }

const (
	anchorSuffix  = ".anchor"
	reportsSuffix = "-reports"
)

// chainPattern matches names of chains that need no quotes in commands and messages.
var chainPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (a *Audit) defaults(databases map[string]*Database) {
	setDefault(&a.Mode, "strict")
	setDefault(&a.File, "audit")
	basePath := strings.TrimRight(a.File, "/")
	setDefault(&a.Key, basePath+".key")
	setDefault(&a.Anchor, basePath+anchorSuffix)
	setDefault(&a.Sink, SinkFile)
	if a.Sink == SinkFile {
		setDefault(&a.Rotate.Size, "64MiB")
		return
	}
	setDefault(&a.Chain, "pgconsent")
	for name := range databases {
		if len(databases) == 1 {
			setDefault(&a.Database, name)
		}
	}
}

func (c *Config) checkAudit(d *decoder) {
	section := c.Audit
	checkOneOf(d, "audit.mode", section.Mode, "strict", "buffered", "off")
	checkOneOf(d, "audit.sink", section.Sink, SinkFile, SinkDatabase)
	if section.Sink == SinkDatabase {
		c.checkAuditDatabase(d)
	} else {
		for key, value := range map[string]string{"database": section.Database, "chain": section.Chain} {
			if value != "" {
				d.addProblem("audit."+key, "Add sink: database, or leave it out.",
					"audit.%s says where records are in a database, and they are kept in files", key)
			}
		}
	}
	for key, path := range map[string]string{"key": section.Key, "anchor": section.Anchor} {
		if isInFolder(path, section.File) {
			d.addProblem("audit."+key,
				"Put it where somebody who may write the records cannot write: beside the folder, better on another disk or machine.",
				"audit.%s is inside the folder of the records, where it proves nothing", key)
		}
	}
	if section.Key == section.Anchor {
		d.addProblem("audit.anchor", "", "audit.key and audit.anchor are the same file")
	}
	if size, err := parseSize(section.Rotate.Size); section.Sink != SinkDatabase && (err != nil || size < minSegment) {
		d.addProblem("audit.rotate.size", "rotate: { size: 64MiB }; 64KiB at least.",
			"audit.rotate.size: %q is not a size that a segment can have", section.Rotate.Size)
	}
	if age, err := parseDuration(section.Rotate.Age); section.Rotate.Age != "" && (err != nil || age < time.Minute) {
		d.addProblem("audit.rotate.age", "rotate: { age: 24h }; 1m at least.", "audit.rotate.age: %q is not a time",
			section.Rotate.Age)
	}
	if keep, err := parseDuration(section.Retention); section.Retention != "" && (err != nil || keep < minRetention) {
		d.addProblem("audit.retention", "retention: 400d; 1d at least. Leave it out to keep records forever.",
			"audit.retention: %q is not a time", section.Retention)
	}
}

// checkAuditDatabase checks the keys that an audit in a database needs.
func (c *Config) checkAuditDatabase(d *decoder) {
	section := c.Audit
	switch {
	case section.Database == "":
		d.addProblem("audit.sink", "audit: { sink: database, database: NAME }",
			"the configuration has several databases: audit.database says which keeps the records")
	case c.Databases[section.Database] == nil:
		d.addProblem("audit.database", "Name one of the section databases.",
			"there is no database %q in the configuration", section.Database)
	}
	if section.Rotate != (Rotate{}) {
		d.addProblem("audit.rotate", "Leave it out; audit.retention works by single records.",
			"audit.rotate is about files, and records are kept in a database")
	}
	if !chainPattern.MatchString(section.Chain) || section.IsReportLog() {
		d.addProblem("audit.chain", "Letters, digits, dots, dashes and underscores; each proxy has its own.",
			"audit.chain: %q is not a name that a chain can have", section.Chain)
	}
}

func isInFolder(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

var (
	sizePattern = regexp.MustCompile(`^([0-9]{1,12})(|KiB|MiB|GiB)$`)
	daysPattern = regexp.MustCompile(`^([0-9]{1,5})d$`)
)

// parseSize parses a number of bytes, such as 64MiB.
func parseSize(text string) (int64, error) {
	m := sizePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("not a size")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := map[string]uint{"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[m[2]]
	if err != nil || n > math.MaxInt64>>shift {
		return 0, errors.New("not a size")
	}
	return n << shift, nil
}

// parseDuration parses a duration, such as 24h or 400d.
func parseDuration(text string) (time.Duration, error) {
	if m := daysPattern.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
