package audit

import "fmt"

// anchorSync keeps the anchor of a log up to date.
type anchorSync struct {
	cfg          Config
	anchor       *anchorWriter // the anchor file; nil: there is none
	anchorFailed bool          // the last write of the anchor failed; the log says so only once
}

// attach opens the anchor file and compares the end of the log with it. If the file was missing and the log has
// records, it returns a record that says so.
func (m *anchorSync) attach(end chainPosition) (*Recovery, error) {
	if m.cfg.AnchorFile == "" {
		return nil, nil
	}
	a, isMissing, err := openAnchor(m.cfg.AnchorFile, m.cfg.Key)
	if err != nil {
		return nil, err
	}
	if err := end.checkHead(a.lastHead); err != nil {
		a.close()
		return nil, fmt.Errorf("%w; keep the records as evidence and start with a new chain", err)
	}
	m.anchor = a
	if isMissing && end.seq > 0 {
		return &Recovery{Cause: "anchor"}, nil
	}
	return nil, nil
}

// checkHead returns an error if the head should be in the last segment and is not. Verify checks heads in older
// segments.
func (at chainPosition) checkHead(h RecordHead) error {
	switch {
	case h.Seq > at.seq:
		return &ChainError{Segment: segmentName(at.segment),
			Reason: fmt.Sprintf("the log ends at record %d, and record %d had been written", at.seq, h.Seq)}
	case h.Seq == at.seq && h.Seq > 0 && h.Hash != at.previousHash:
		return &ChainError{Segment: segmentName(at.segment),
			Reason: fmt.Sprintf("record %d is not the one that the anchor names", h.Seq)}
	default:
		return nil
	}
}

// writeHead writes the newest durable record into the anchor. An error is logged and counted, but no statement is
// refused: the records themselves are durable.
func (m *anchorSync) writeHead(durablePosition chainPosition) {
	if m.anchor == nil {
		return
	}
	err := m.anchor.writeHead(RecordHead{durablePosition.seq, durablePosition.previousHash}, m.cfg.Clock())
	if err != nil && !m.anchorFailed {
		m.cfg.Log.Error("audit: the anchor cannot be written; until it can, nobody will find that newer records "+
			"were cut off", "anchor", m.cfg.AnchorFile, "error", err)
	}
	if err != nil && m.cfg.Observer != nil {
		m.cfg.Observer.AuditAnchorFailed()
	}
	m.anchorFailed = err != nil
}

func (m *anchorSync) close() {
	if m.anchor != nil {
		m.anchor.close()
	}
}
