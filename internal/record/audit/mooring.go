package audit

import (
	"fmt"
)

// mooring holds a log to its anchor.
type mooring struct {
	cfg    Config
	anchor *anchor // nil: none
	adrift bool    // it could not be written, and that was logged
}

// moor opens the anchor and holds the end of the log to it. It returns the record that says that there was none.
func (m *mooring) moor(at place) (*Recovery, error) {
	if m.cfg.Anchor == "" {
		return nil, nil
	}
	a, missing, err := openAnchor(m.cfg.Anchor, m.cfg.Key)
	if err != nil {
		return nil, err
	}
	if err := at.reaches(a.last); err != nil {
		a.close()
		return nil, fmt.Errorf("%w; keep the records as evidence and start with a new chain", err)
	}
	m.anchor = a
	if missing && at.seq > 0 {
		return &Recovery{Cause: "anchor"}, nil
	}
	return nil, nil
}

// reaches tells whether the log has this record. One in an older segment than the last is left to Verify.
func (at place) reaches(h Head) error {
	switch {
	case h.Seq > at.seq:
		return &ChainError{Segment: segmentName(at.segment),
			Why: fmt.Sprintf("the log ends at record %d, and record %d had been written", at.seq, h.Seq)}
	case h.Seq == at.seq && h.Seq > 0 && h.Hash != at.hash:
		return &ChainError{Segment: segmentName(at.segment),
			Why: fmt.Sprintf("record %d is not the one that the anchor names", h.Seq)}
	default:
		return nil
	}
}

// drop lowers the anchor to what is durable. The records are: what fails is said, and refuses nobody.
func (m *mooring) drop(durable place) {
	if m.anchor == nil {
		return
	}
	err := m.anchor.set(Head{durable.seq, durable.hash}, m.cfg.Now())
	if err != nil && !m.adrift {
		m.cfg.Log.Error("audit: the anchor cannot be written; until it can, nobody will find that newer records "+
			"were cut off", "anchor", m.cfg.Anchor, "error", err)
	}
	if err != nil && m.cfg.Observer != nil {
		m.cfg.Observer.AuditAnchorFailed()
	}
	m.adrift = err != nil
}

func (m *mooring) close() {
	if m.anchor != nil {
		m.anchor.close()
	}
}
