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
	"sync"
	"time"
)

// A sealed message consists of
//
//	form (1 byte) | length of the sender's name (1) | the name | number (8) | time (8) | AES-GCM
//
// The key is different for each sender. Everything before the ciphertext is authenticated, and so
// is the name of the receiver. Messages to all nodes have numbers of their own, because they overtake
// others on their way.
const (
	toOne    = 1  // the form of a message to one node
	toAll    = 2  // the form of a message to all nodes
	counters = 16 // bytes of the number and the time, which is in Unix milliseconds
)

// channelOfAll returns the channel of messages to all nodes, which is also their receiver. It is
// different for installations that share a transport.
func channelOfAll(secret [sha256.Size]byte) string {
	name, err := hkdf.Key(sha256.New, secret[:], nil, "selvage bus channel of all nodes", 16)
	if err != nil {
		panic(err) // only for longer keys
	}
	return "all-" + hex.EncodeToString(name)
}

// freshFor is how old a message may be. A node is not ready if its clock differs from those of
// other nodes by more than this.
const freshFor = 2 * time.Minute

// The reasons for refusing a message.
var (
	errSeal  = errors.New("no node with the same master key sealed it for this node")
	errOld   = fmt.Errorf("its time is more than %v off", freshFor)
	errAgain = errors.New("it or a later one arrived before")
)

// A sealer seals the messages of one form that a node sends, and opens those that it receives. It is
// safe for concurrent use.
type sealer struct {
	secret   [sha256.Size]byte
	node     string
	form     byte
	receiver string // of messages that it opens

	mu      sync.Mutex
	own     cipher.AEAD
	sent    uint64
	senders map[string]*sender // at least those heard from within freshFor
}

// A sender holds what a sealer remembers about another node that has sent it messages.
type sender struct {
	aead   cipher.AEAD
	number uint64    // the number of its last message
	at     time.Time // the latest time in its messages
}

func newSealer(secret [sha256.Size]byte, node string) *sealer {
	s := &sealer{secret: secret, node: node, form: toOne, receiver: node, senders: make(map[string]*sender)}
	s.own = s.cipherOf(node)
	return s
}

// newBroadcastSealer returns a sealer for messages to all nodes.
func newBroadcastSealer(secret [sha256.Size]byte, node string) *sealer {
	s := newSealer(secret, node)
	s.form, s.receiver = toAll, channelOfAll(secret)
	return s
}

// cipherOf returns the cipher for messages from a node.
func (s *sealer) cipherOf(node string) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, s.secret[:], nil, "selvage bus "+node, 32)
	if err != nil {
		panic(err) // only for longer keys
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for keys of other lengths
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for ciphers with other blocks
	}
	return aead
}

// seal seals a message to a node. It numbers messages in increasing order.
func (s *sealer) seal(to string, text []byte, now time.Time) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
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
		known = &sender{aead: s.cipherOf(from)}
	}
	if text, err = known.aead.Open(nil, nil, ciphertext, bind(head, s.receiver)); err != nil {
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

// forget deletes the senders whose messages are all too old to be opened again.
func (s *sealer) forget(now time.Time) {
	for name, known := range s.senders {
		if now.Sub(known.at) > freshFor {
			delete(s.senders, name)
		}
	}
}
