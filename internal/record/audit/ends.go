package audit

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// ChainEnds describes the oldest and the newest record of a chain.
type ChainEnds struct {
	Records           uint64    // the number of records in the chain, by the numbers of the oldest and the newest
	OldestTime        time.Time // the time of the oldest record; zero: there are no records
	SecondSegmentTime time.Time // the time of the second segment's first record; zero: there are fewer than two segments
	NewestTime        time.Time
	NewestHead        RecordHead // the newest record
	// how many bytes follow the newest record: a record that is being written, or that a crash cut off
	TornBytes int64
}

// ReadEnds reads the first record of a chain and its last segment. It checks the newest record by its hash, the key and
// an anchored head. The records in between are not read; [VerifyOptions] checks them. A missing folder counts as a
// chain without records.
func ReadEnds(from Source, key Key, anchoredHead RecordHead) (ChainEnds, error) {
	var e ChainEnds
	segments, err := from.Segments()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return e, err
	}
	position := chainPosition{segment: 1, previousHash: genesisHash}
	var newest Record
	if len(segments) > 0 {
		end, tail, err := readTail(from, segments)
		if err != nil {
			return e, err
		}
		position, e.TornBytes = end, int64(len(tail))
		for i, segment := range segments[:min(2, len(segments))] {
			first, err := firstRecord(from, segment)
			switch {
			case err != nil:
				return e, err
			case first == nil:
			case i == 0:
				e.OldestTime, e.Records = first.Time, position.seq-first.Seq+1
			default:
				e.SecondSegmentTime = first.Time
			}
		}
		if _, err := ReadNewest(from, 1, func(Record) bool { return true },
			func(r Record) error { newest = r; return nil }); err != nil {
			return e, err
		}
	}
	e.NewestHead, e.NewestTime = RecordHead{position.seq, position.previousHash}, newest.Time
	if err := position.checkHead(anchoredHead); err != nil {
		return e, err
	}
	if key.secret == nil || newest.Seq == 0 {
		return e, nil
	}
	switch {
	case newest.KeyID == "":
		return e, &ChainError{Segment: segmentName(position.segment),
			Reason: fmt.Sprintf("record %d has no code: it was not written with the key", newest.Seq)}
	case newest.KeyID != key.ID() || !hmac.Equal([]byte(newest.MAC), []byte(key.recordCode(newest.Hash))):
		return e, &ChainError{Segment: segmentName(position.segment),
			Reason: fmt.Sprintf("record %d was not written with the key", newest.Seq)}
	}
	return e, nil
}
