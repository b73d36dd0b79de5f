package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"sync"
	"time"
)

// genesisHash is the hash that the first record has in place of the hash of a record before it.
const genesisHash = "0000000000000000000000000000000000000000000000000000000000000000"

// lineWriter encodes records as lines of the log. It reuses its buffers, so only one goroutine may use it.
type lineWriter struct {
	kid        string    // the id of the key; "": there is no key, and lines have no codes
	mac        hash.Hash // the MAC with the key of the audit
	signed     []byte    // what the MAC signs of the last line
	hashBuffer [sha256.Size]byte

	second     int64  // the second of the last line, since 1970
	secondText []byte // the text of that second, without a fraction; empty: there was no line
}

func newLineWriter(key Key) lineWriter {
	if key.secret == nil {
		return lineWriter{}
	}
	return lineWriter{kid: key.ID(), mac: hmac.New(sha256.New, key.secret)}
}

// append appends the line of a record whose number is set. It also returns the record's hash, a part of that line,
// which the next line names. The hash is SHA-256 over the line up to the member "hash"; only the code of the hash
// follows it.
func (s *lineWriter) append(dst []byte, prev []byte, t *Ticket) (lines, hash []byte, err error) {
	start := len(dst)
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, FormatVersion, 10)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendUint(dst, t.seq, 10)
	dst = append(dst, `,"time":"`...)
	dst = s.appendTime(dst, t.recordedAt)
	dst = append(dst, `","prev":"`...)
	dst = append(dst, prev...)
	dst = append(dst, `","kind":"`...)
	dst = append(dst, t.kind...)
	dst = append(dst, `",`...)
	switch {
	case t.encodedMembers == nil:
		if dst, err = appendMembersOf(dst, t.rareRecord); err != nil {
			return dst[:start], nil, err
		}
	case t.decision != nil:
		dst = strconv.AppendUint(append(dst, `"decision":`...), t.decision.seq, 10)
		dst = appendMember(dst, `,"session":`, t.decision.session)
		dst = append(dst, *t.encodedMembers...)
	default:
		dst = append(dst, *t.encodedMembers...)
	}
	s.hashBuffer = sha256.Sum256(dst[start:])
	dst = append(dst, hashMember...)
	lineStart := len(dst)
	dst = hex.AppendEncode(dst, s.hashBuffer[:])
	if s.mac != nil {
		dst = append(append(dst, kidMember...), s.kid...)
		dst = hex.AppendEncode(append(dst, macMember...), s.code(dst[lineStart:lineStart+hashLen]))
	}
	return append(dst, "\"}\n"...), dst[lineStart : lineStart+hashLen], nil
}

// appendTime appends a time in UTC with microseconds. Lines that follow one another are mostly of the same second,
// whose text is kept.
func (s *lineWriter) appendTime(dst []byte, t time.Time) []byte {
	if second := t.Unix(); second != s.second || len(s.secondText) == 0 {
		s.second, s.secondText = second, t.UTC().AppendFormat(s.secondText[:0], "2006-01-02T15:04:05")
	}
	dst = append(append(dst, s.secondText...), ".000000Z"...)
	digits := dst[len(dst)-len("000000Z"):]
	for i, us := len("000000")-1, t.Nanosecond()/1000; us > 0; i, us = i-1, us/10 {
		digits[i] += byte(us % 10)
	}
	return dst
}

// hashLen is the length of a hash in a line, in characters.
const hashLen = 2 * sha256.Size

const recordUse = "record\x00"

// code returns the code of a hash, as [Key.CheckCode] expects it. The next call overwrites it.
func (s *lineWriter) code(hash []byte) []byte {
	s.signed = append(append(append(s.signed[:0], recordUse...), hash...), 0)
	s.mac.Reset()
	s.mac.Write(s.signed)
	return s.mac.Sum(s.hashBuffer[:0])
}

// memberBuffers are buffers for the encoded members of queued records.
var memberBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// maxPooledBuffer is the capacity up to which a buffer goes back to memberBuffers.
const maxPooledBuffer = 16 << 10

// releaseBuffer gives the record's buffer back to memberBuffers.
func (t *Ticket) releaseBuffer() {
	if t.encodedMembers == nil {
		return
	}
	if cap(*t.encodedMembers) <= maxPooledBuffer {
		*t.encodedMembers = (*t.encodedMembers)[:0]
		memberBuffers.Put(t.encodedMembers)
	}
	t.encodedMembers = nil
}

func newMemberBuffer() *[]byte { return memberBuffers.Get().(*[]byte) }
