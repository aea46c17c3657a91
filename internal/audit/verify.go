package audit

import (
	"crypto/hmac"
	"fmt"
	"time"
)

// A Verifier checks the events of a lane in order and reports where the chain is broken.
type Verifier struct {
	key   *Key // the key of the newest generation
	head  Head
	spans []Span // the spans that are not finished yet, oldest first

	seq   int64 // the position of the last event that was checked, or else of the last one that was pruned
	hash  string
	Count int64
	First time.Time // the time of the first event
	Last  time.Time
}

// A Break is the first place where a lane differs from what the server wrote.
type Break struct {
	Lane int
	Seq  int64  // the first faulty position
	ID   string // the event found there; "" if it is missing
	What string
}

// Error describes the break in one line.
func (b *Break) Error() string {
	if b.ID == "" {
		return fmt.Sprintf("lane %d, event %d: %s", b.Lane, b.Seq, b.What)
	}
	return fmt.Sprintf("lane %d, event %d (%s): %s", b.Lane, b.Seq, b.ID, b.What)
}

// Verify returns a Verifier for a lane. The caller must read head before it reads the events. The
// parameter spans lists the parts of the lane that were written with earlier keys, oldest first.
func (k *Key) Verify(head Head, spans ...Span) (*Verifier, error) {
	v := &Verifier{key: k, head: head, spans: spans, seq: head.PrunedSeq, hash: head.PrunedHash}
	if err := v.checkSpans(); err != nil {
		return v, err
	}
	if head.Begun() && !same(head.PrunedMac, k.Mac(PrunedUntil, head.Lane, 0, head.PrunedHash)) {
		return v, v.broken(1, "",
			"the beginning of the lane was not written by this server, or was written with a different master key")
	}
	if head.PrunedSeq != 0 && !same(head.PrunedMac, k.Mac(PrunedUntil, head.Lane, head.PrunedSeq, head.PrunedHash)) {
		return v, v.broken(head.PrunedSeq, "",
			"the record of pruned events was not written by this server")
	}
	return v, v.checkEnd(head)
}

// checkSpans checks that the server has written all spans, and drops those that were pruned.
func (v *Verifier) checkSpans() error {
	if int64(len(v.spans)) != v.key.Generation() {
		return v.broken(max(1, v.seq), "", "the record of an earlier master key is missing, or there is one too many")
	}
	for i, s := range v.spans {
		if s.Generation != int64(i) || s.Lane != v.head.Lane || !v.key.SealsSpan(s) {
			return v.broken(s.Seq, "", "the record of an earlier master key was not written by this server")
		}
	}
	for len(v.spans) > 0 && v.spans[0].Seq < v.seq {
		v.spans = v.spans[1:]
	}
	return v.finishSpans()
}

// finishSpans drops the spans that end at the current position, after checking their hashes.
func (v *Verifier) finishSpans() error {
	for len(v.spans) > 0 && v.spans[0].Seq == v.seq {
		if v.spans[0].Hash != v.hash {
			return v.broken(v.seq, "", "the event is not the last one before the master key was replaced")
		}
		v.spans = v.spans[1:]
	}
	return nil
}

// hasher returns the key that the event after the current position was written with.
func (v *Verifier) hasher() *Key {
	if len(v.spans) == 0 {
		return v.key
	}
	return v.key.of(v.spans[0].Generation)
}

func (v *Verifier) checkEnd(head Head) error {
	switch {
	case v.key.Ends(head):
		return nil
	case head.Seq == 0:
		return v.broken(1, "", "the event and all later ones are missing: the lane was not left empty by "+
			"this server, or was written with a different master key")
	}
	return v.broken(head.Seq, "",
		"the end of the lane was not written by this server, or was written with a different master key")
}

// Next checks e, the next event in the lane. Events after the head passed to Verify were written
// later. They must continue the chain, too.
func (v *Verifier) Next(e Event) error {
	detail, key := e.DetailText(), v.hasher()
	tampered := key.Behind(Head{Lane: v.head.Lane, Seq: -1, Hash: v.hash})
	switch {
	case e.Seq > v.seq+1:
		return v.broken(v.seq+1, "", gap(v.seq+1, e.Seq-1))
	case e.Seq <= v.seq:
		return v.broken(e.Seq, e.ID, "another event has this position")
	case same(e.Hash, key.Hash(e, detail, tampered)):
		return v.broken(e.Seq, e.ID, "when the event was written, the end of the lane was not "+
			"the one this server had written: earlier events may be missing")
	case !same(e.Hash, key.Hash(e, detail, v.hash)):
		return v.broken(e.Seq, e.ID, "the event or the one before it was changed")
	}

	v.seq, v.hash, v.Last = e.Seq, e.Hash, e.At
	v.Count++
	if v.Count == 1 {
		v.First = e.At
	}
	if e.Seq == v.head.Seq && e.Hash != v.head.Hash {
		return v.broken(e.Seq, e.ID, "the lane ends with a different event")
	}
	return v.finishSpans()
}

// At returns the position up to which the lane has been checked.
func (v *Verifier) At() Head { return Head{Lane: v.head.Lane, Seq: v.seq, Hash: v.hash} }

// End finishes the check. The parameter now is the head of the lane, read after the events. The
// checked events must reach the head passed to Verify, and must not go beyond this new head.
func (v *Verifier) End(now Head) error {
	if v.seq < v.head.Seq {
		return v.broken(v.seq+1, "", gap(v.seq+1, v.head.Seq))
	}
	if v.seq > now.Seq {
		return v.broken(now.Seq+1, "", "the event is after the end of the lane")
	}
	return v.checkEnd(now)
}

func gap(from, to int64) string {
	if from == to {
		return "the event is missing"
	}
	return fmt.Sprintf("the events from here to %d are missing", to)
}

func (v *Verifier) broken(seq int64, id, what string) error {
	return &Break{Lane: v.head.Lane, Seq: seq, ID: id, What: what}
}

func same(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
