package bus

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A sealed message consists of
//
//	form (1 byte) | length of the sender's name (1) | the name | number (8) | time (8) | AES-GCM
//
// The key is different for each sender. Everything before the ciphertext is authenticated, and so
// is the name of the receiver. Messages to all nodes are numbered separately from messages to one
// node, because a message of one form may overtake a message of the other.
const (
	toOne    = 1  // the form of a message to one node
	toAll    = 2  // the form of a message to all nodes
	counters = 16 // bytes of the number and the time, which is in Unix milliseconds
)

// channelOfAll returns the name of the channel for messages to all nodes, which is also authenticated as
// the name of their receiver. Installations that share a transport have different channels.
func channelOfAll(secret [sha256.Size]byte) string {
	name, err := hkdf.Key(sha256.New, secret[:], nil, "selvage bus channel of all nodes", 16)
	if err != nil {
		panic(err) // cannot happen: HKDF rejects only much longer keys
	}
	return "all-" + hex.EncodeToString(name)
}

// freshFor is how far the time in a message may be from the receiver's clock. A node is not ready if its
// clock differs by more than this from those of other nodes.
const freshFor = 2 * time.Minute

// A secret is known to all nodes of an installation, and to nobody else.
type secret = [sha256.Size]byte

// The reasons for refusing a message.
var (
	errSeal  = errors.New("it was not sealed for this node with a trusted key")
	errOld   = fmt.Errorf("its time is more than %v off", freshFor)
	errAgain = errors.New("it, or a later message, has already arrived")
)

// A sealer seals the messages of one form that a node sends, and opens the messages of that form
// that the node receives. It is safe for concurrent use.
type sealer struct {
	secrets  func() []secret // the newest first
	node     string
	form     byte
	receiver string // the receiver of the messages that this sealer opens

	mu      sync.Mutex
	own     cipher.AEAD
	using   secret    // the secret that own is derived from
	next    secret    // the newest secret, if it differs from using
	since   time.Time // when next was first seen
	sent    uint64
	senders map[string]*sender // by name; includes every node that sent a message within the last freshFor
}

// A sender is the state that a sealer keeps for another node that has sent it messages.
type sender struct {
	aead   cipher.AEAD
	with   secret    // the secret that aead is derived from
	number uint64    // the number of its last message
	at     time.Time // the latest time in its messages
}

func newSealer(secrets func() []secret, node string) *sealer {
	s := &sealer{secrets: secrets, node: node, form: toOne, receiver: node, senders: make(map[string]*sender)}
	s.using = secrets()[0]
	s.next = s.using
	s.own = cipherOf(s.using, node)
	return s
}

// newBroadcastSealer returns a sealer for messages to all nodes of an installation.
func newBroadcastSealer(secrets func() []secret, installation secret, node string) *sealer {
	s := newSealer(secrets, node)
	s.form, s.receiver = toAll, channelOfAll(installation)
	return s
}

// settleFor is how long a node waits before it seals with a new secret, so that the other nodes
// learn the new secret first. A node does not wait if the previous secret is no longer trusted.
const settleFor = 5 * time.Second

// renew makes s seal with the newest secret once settleFor has passed.
func (s *sealer) renew(now time.Time) {
	all := s.secrets()
	switch {
	case all[0] == s.using:
		return
	case all[0] != s.next:
		s.next, s.since = all[0], now
	}
	if now.Sub(s.since) >= settleFor || !slices.Contains(all, s.using) {
		s.using = s.next
		s.own = cipherOf(s.using, s.node)
	}
}

// cipherOf returns the cipher for messages from a node.
func cipherOf(from secret, node string) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, from[:], nil, "selvage bus "+node, 32)
	if err != nil {
		panic(err) // cannot happen: HKDF rejects only much longer keys
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // cannot happen: 32 bytes are a valid key
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // cannot happen: the blocks of AES have the required size
	}
	return aead
}

// seal seals a message to a node, or to all nodes. It numbers messages in increasing order.
func (s *sealer) seal(to string, text []byte, now time.Time) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew(now)
	s.sent++
	head := append([]byte{s.form, byte(len(s.node))}, s.node...)
	head = binary.BigEndian.AppendUint64(head, s.sent)
	head = binary.BigEndian.AppendUint64(head, uint64(now.UnixMilli()))
	return s.own.Seal(head, nil, text, bind(head, to))
}

// bind returns the data that is authenticated but not encrypted.
func bind(head []byte, to string) []byte { return append(head[:len(head):len(head)], to...) }

// open opens a message to the receiver, and returns its sender. It opens each message at most once,
// and refuses messages older than the last one from the same sender.
func (s *sealer) open(sealed []byte, now time.Time) (from string, text []byte, err error) {
	if len(sealed) < 2 || sealed[0] != s.form || len(sealed) < 2+int(sealed[1])+counters {
		return "", nil, errSeal
	}
	length := 2 + int(sealed[1]) + counters
	head, ciphertext := sealed[:length], sealed[length:]
	from = string(head[2 : length-counters])
	number := binary.BigEndian.Uint64(head[length-counters:])
	at := time.UnixMilli(int64(binary.BigEndian.Uint64(head[length-8:])))

	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.senders[from]
	if known == nil {
		known = new(sender)
	}

	if text, err = s.openFrom(known, from, ciphertext, bind(head, s.receiver)); err != nil {
		return "", nil, errSeal
	}
	switch {
	case now.Sub(at).Abs() > freshFor:
		return "", nil, errOld
	case number <= known.number:
		return "", nil, errAgain
	}

	known.number = number
	if at.After(known.at) {
		known.at = at
	}
	if s.senders[from] == nil {
		s.forget(now)
		s.senders[from] = known
	}
	return from, text, nil
}

// openFrom decrypts a message. It first tries the secret that its sender used last, then all
// others.
func (s *sealer) openFrom(known *sender, from string, ciphertext, bound []byte) (text []byte, err error) {
	all := s.secrets()
	if known.aead != nil && slices.Contains(all, known.with) {
		if text, err = known.aead.Open(nil, nil, ciphertext, bound); err == nil {
			return text, nil
		}
	}

	for _, with := range all {
		if known.aead != nil && with == known.with {
			continue
		}
		aead := cipherOf(with, from)
		if text, err = aead.Open(nil, nil, ciphertext, bound); err == nil {
			known.aead, known.with = aead, with
			return text, nil
		}
	}
	return nil, errSeal
}

// forget deletes the senders whose messages are all too old to be opened again.
func (s *sealer) forget(now time.Time) {
	for name, known := range s.senders {
		if now.Sub(known.at) > freshFor {
			delete(s.senders, name)
		}
	}
}
