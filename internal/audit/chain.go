package audit

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"sync"
)

// A Key computes the hashes of chains. Its methods are safe for concurrent use.
type Key struct {
	macs    sync.Pool
	earlier []*Key // keys derived from earlier master keys, oldest first
}

// NewKey derives a Key from the master key and from the installation's earlier master keys, which
// are passed oldest first.
func NewKey(master []byte, earlier ...[]byte) (*Key, error) {
	k := new(Key)
	for _, m := range earlier {
		before, err := NewKey(m)
		if err != nil {
			return nil, err
		}
		k.earlier = append(k.earlier, before)
	}

	secret, err := hkdf.Key(sha256.New, master, nil, "selvage audit", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}
	k.macs.New = func() any { return hmac.New(sha256.New, secret) }
	return k, nil
}

// Generation returns how many master keys the installation had before the current one.
func (k *Key) Generation() int64 { return int64(len(k.earlier)) }

// of returns the key of an earlier generation, or nil if there is no earlier generation with this
// number.
func (k *Key) of(generation int64) *Key {
	if generation < 0 || generation >= k.Generation() {
		return nil
	}
	return k.earlier[generation]
}

// Hash returns the hash of the event e, whose DetailText is detail. The parameter before is the
// hash of the previous event in the lane, or "" if e is the first.
func (k *Key) Hash(e Event, detail, before string) string {
	b := make([]byte, 0, 512)
	b = appendText(b, "event 1")
	b = appendNumber(b, int64(e.Lane))
	b = appendNumber(b, e.Seq)
	b = appendText(b, before)
	b = appendText(b, e.ID)
	b = appendNumber(b, e.At.UnixMicro())
	for _, text := range [...]string{
		e.ProjectID,
		e.Action,
		string(e.Outcome),
		string(e.Actor.Kind),
		e.Actor.ID,
		e.Target.Kind,
		e.Target.ID,
		e.Address,
		e.RequestID,
		detail,
	} {
		b = appendText(b, text)
	}
	return k.sum(b)
}

// A Head is the end of a lane. Its Mac is updated with each event, and even an empty lane has a Mac.
// Someone who deletes the last events, or a whole lane, cannot compute the Mac for the new end.
type Head struct {
	Lane int
	Seq  int64
	Hash string
	Mac  string

	// The last pruned event: the lane begins after it. If nothing was pruned, PrunedHash is the
	// initial hash, which all lanes of a new installation share.
	PrunedSeq  int64
	PrunedHash string
	PrunedMac  string

	Generation int64 // the generation of the key that wrote Mac
}

// A Span is the part of a lane that was written with an earlier key. It ends with the event Seq,
// whose hash is Hash. Mac is written with the newest key.
type Span struct {
	Lane       int
	Generation int64
	Seq        int64
	Hash       string
	Mac        string
}

// SpanMac returns the authentication code of a span.
func (k *Key) SpanMac(s Span) string {
	b := make([]byte, 0, 128)
	b = appendText(b, spanEnd)
	b = appendNumber(b, int64(s.Lane))
	b = appendNumber(b, s.Generation)
	b = appendNumber(b, s.Seq)
	return k.sum(appendText(b, s.Hash))
}

// SealsSpan reports whether the span's Mac was made with this key.
func (k *Key) SealsSpan(s Span) bool { return same(s.Mac, k.SpanMac(s)) }

// Mac returns the authentication code for a position in a lane. The parameter what is EndOfLane for
// the end of the lane, or PrunedUntil for its beginning after pruning.
func (k *Key) Mac(what string, lane int, seq int64, hash string) string {
	b := make([]byte, 0, 128)
	b = appendText(b, what)
	b = appendNumber(b, int64(lane))
	b = appendNumber(b, seq)
	return k.sum(appendText(b, hash))
}

// The kinds of data that Mac authenticates; see its parameter what.
const (
	EndOfLane   = "end 2"
	earlierEnd  = "end 1" // EndOfLane in older versions, which wrote no Mac for empty lanes
	PrunedUntil = "pruned 1"
	boundKey    = "bound 1"
	spanEnd     = "span 1"
)

// Ends reports whether h was written with this key as the end of its lane.
func (k *Key) Ends(h Head) bool {
	return same(h.Mac, k.Mac(EndOfLane, h.Lane, h.Seq, h.Hash)) || k.hasEarlierMac(h)
}

// Earlier reports whether an older version wrote h: either without a Mac, or with a Mac in an older
// form.
func (k *Key) Earlier(h Head) bool { return h.Bare() || k.hasEarlierMac(h) }

// hasEarlierMac reports whether the Mac of h has the form that older versions wrote.
func (k *Key) hasEarlierMac(h Head) bool {
	return h.Seq > 0 && same(h.Mac, k.Mac(earlierEnd, h.Lane, h.Seq, h.Hash))
}

// Bare reports whether the lane has neither events nor a Mac.
func (h Head) Bare() bool {
	return h.Seq == 0 && h.PrunedSeq == 0 && h.Hash+h.Mac+h.PrunedHash+h.PrunedMac == ""
}

// Begun reports whether the head records how the lane began.
func (h Head) Begun() bool { return h.PrunedSeq == 0 && h.PrunedHash != "" }

// Bind returns the authentication code that ties a key of the ring to the beginning of a trail.
func (k *Key) Bind(kid, beginning string) string {
	b := make([]byte, 0, 128)
	b = appendText(b, boundKey)
	b = appendText(b, kid)
	return k.sum(appendText(b, beginning))
}

// Binds reports whether code is the result of Bind.
func (k *Key) Binds(kid, beginning, code string) bool { return same(code, k.Bind(kid, beginning)) }

// Behind returns the hash that the next event of a lane is chained to. If h was not written by the
// server, the result matches no stored hash, so the chain stays broken.
func (k *Key) Behind(h Head) string {
	if k.Ends(h) {
		return h.Hash
	}
	return "tampered with " + h.Hash
}

func (k *Key) sum(b []byte) string {
	mac := k.macs.Get().(hash.Hash)
	defer k.macs.Put(mac)
	mac.Reset()
	mac.Write(b)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(b[:0]))
}

// appendText appends s after its length, and appendNumber appends n in 8 bytes, so that no two
// sequences of values have the same encoding.
func appendText(b []byte, s string) []byte { return append(appendNumber(b, int64(len(s))), s...) }

func appendNumber(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }
