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

// A Key makes the hashes of chains. Its methods may be called at once from any number of
// goroutines.
type Key struct{ macs sync.Pool }

// NewKey derives the key from the master key.
func NewKey(master []byte) (*Key, error) {
	secret, err := hkdf.Key(sha256.New, master, nil, "selvage audit", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("deriving key: %w", err)
	}
	return &Key{sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}}, nil
}

// Hash returns the hash of an event behind another, "" for the first of its lane. detail is
// its DetailText.
func (k *Key) Hash(e Event, detail, before string) string {
	b := make([]byte, 0, 512)
	b = text(b, "event 1")
	b = number(b, int64(e.Lane))
	b = number(b, e.Seq)
	b = text(b, before)
	b = text(b, e.ID)
	b = number(b, e.At.UnixMicro())
	for _, s := range [...]string{
		e.ProjectID, e.Action, string(e.Outcome), string(e.Actor.Kind), e.Actor.ID, e.Target.Kind,
		e.Target.ID, e.Address, e.RequestID, detail,
	} {
		b = text(b, s)
	}
	return k.sum(b)
}

// A Head is where a lane ends. Its Mac is made with each event, and before the first one:
// who deletes the last ones has none for where it ends then, nor for a lane that was never
// written to.
type Head struct {
	Lane int
	Seq  int64
	Hash string
	Mac  string

	// What was pruned: the lane begins behind it. Where that is nothing, the hash is the
	// beginning that the lanes of a new installation have in common.
	PrunedSeq  int64
	PrunedHash string
	PrunedMac  string
}

// Mac returns the code of the end of a lane, and of where it begins after it was pruned.
func (k *Key) Mac(what string, lane int, seq int64, hash string) string {
	b := make([]byte, 0, 128)
	b = text(b, what)
	b = number(b, int64(lane))
	b = number(b, seq)
	return k.sum(text(b, hash))
}

// The things that have a Mac.
const (
	EndOfLane   = "end 2"
	earlierEnd  = "end 1" // before lanes without events had one
	PrunedUntil = "pruned 1"
	boundKey    = "bound 1"
)

// Ends reports whether a server with the key has written that the lane ends there.
func (k *Key) Ends(h Head) bool {
	return same(h.Mac, k.Mac(EndOfLane, h.Lane, h.Seq, h.Hash)) || h.Seq > 0 &&
		same(h.Mac, k.Mac(earlierEnd, h.Lane, h.Seq, h.Hash))
}

// Earlier reports whether the end of a lane is as it was before those without events had a
// code: made by a server of then, or bare.
func (k *Key) Earlier(h Head) bool {
	return h.Bare() || h.Seq > 0 && same(h.Mac, k.Mac(earlierEnd, h.Lane, h.Seq, h.Hash))
}

// Bare reports whether a lane has neither events nor a code.
func (h Head) Bare() bool {
	return h.Seq == 0 && h.PrunedSeq == 0 && h.Hash+h.Mac+h.PrunedHash+h.PrunedMac == ""
}

// Begun reports whether the lane says how it began.
func (h Head) Begun() bool { return h.PrunedSeq == 0 && h.PrunedHash != "" }

// Bind returns the code by which a key of the ring belongs to the beginning of a trail.
func (k *Key) Bind(kid, beginning string) string {
	b := make([]byte, 0, 128)
	return k.sum(text(text(text(b, boundKey), kid), beginning))
}

// Binds reports whether a code is that of Bind.
func (k *Key) Binds(kid, beginning, code string) bool { return same(code, k.Bind(kid, beginning)) }

// Behind returns what the next event of a lane is chained to. Where somebody else has written
// the end of the lane it is nothing that fits there, so that the chain stays broken.
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

// text and number write what cannot be read in two ways.
func text(b []byte, s string) []byte { return append(number(b, int64(len(s))), s...) }

func number(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }
