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

// Audit says where decisions are recorded.
type Audit struct {
	Mode      string `yaml:"mode"`      // strict, buffered, off
	File      string `yaml:"file"`      // a folder
	Key       string `yaml:"key"`       // of the codes of records; made by serve
	Anchor    string `yaml:"anchor"`    // of the newest head
	Rotate    Rotate `yaml:"rotate"`    // when the next segment begins
	Retention string `yaml:"retention"` // how long records are kept; "": forever
}

// Rotate says when a segment of the audit is full.
type Rotate struct {
	Size string `yaml:"size"` // 64MiB
	Age  string `yaml:"age"`  // 24h; "": any
}

// The bounds of what is configured.
const (
	minSegment   = 64 << 10
	minRetention = 24 * time.Hour
)

// Sizes returns when a segment is full and how long it is kept, as [Load] has checked them; 0: without bound.
func (a Audit) Sizes() (size int64, age, retention time.Duration) {
	size, _ = parseSize(a.Rotate.Size)
	if a.Rotate.Age != "" {
		age, _ = parseDuration(a.Rotate.Age)
	}
	if a.Retention != "" {
		retention, _ = parseDuration(a.Retention)
	}
	return size, age, retention
}

func (a *Audit) defaults() {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&a.Mode, "strict")
	set(&a.File, "audit")
	beside := strings.TrimRight(a.File, "/")
	set(&a.Key, beside+".key")
	set(&a.Anchor, beside+".anchor")
	set(&a.Rotate.Size, "64MiB")
}

func (c *Config) checkAudit(d *decoder) {
	a := c.Audit
	oneOf(d, "audit.mode", a.Mode, "strict", "buffered", "off")
	for key, path := range map[string]string{"key": a.Key, "anchor": a.Anchor} {
		if inside(path, a.File) {
			d.problem("audit."+key, "Put it where somebody who may write the records may not write: beside the folder, better on another disk or machine.",
				"audit.%s is inside the folder of the records, where it proves nothing", key)
		}
	}
	if a.Key == a.Anchor {
		d.problem("audit.anchor", "", "audit.key and audit.anchor are the same file")
	}
	if size, err := parseSize(a.Rotate.Size); err != nil || size < minSegment {
		d.problem("audit.rotate.size", "rotate: { size: 64MiB }; 64KiB at least.", "audit.rotate.size: %q is not a size that a segment can have", a.Rotate.Size)
	}
	if age, err := parseDuration(a.Rotate.Age); a.Rotate.Age != "" && (err != nil || age < time.Minute) {
		d.problem("audit.rotate.age", "rotate: { age: 24h }; 1m at least.", "audit.rotate.age: %q is not a time", a.Rotate.Age)
	}
	if keep, err := parseDuration(a.Retention); a.Retention != "" && (err != nil || keep < minRetention) {
		d.problem("audit.retention", "retention: 400d; 1d at least. Leave it out to keep records forever.", "audit.retention: %q is not a time", a.Retention)
	}
}

func inside(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

var (
	sizePattern = regexp.MustCompile(`^([0-9]{1,12})(|KiB|MiB|GiB)$`)
	daysPattern = regexp.MustCompile(`^([0-9]{1,5})d$`)
)

// parseSize reads a number of bytes, as 64MiB.
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

// parseDuration reads a time, as 24h or 400d.
func parseDuration(text string) (time.Duration, error) {
	if m := daysPattern.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
