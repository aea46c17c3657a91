// Package bus carries messages between the nodes of an installation.
//
// A message arrives at most once, usually within a few milliseconds. Messages from one node to
// another arrive in the order in which they were sent, and broadcasts from one node also arrive in
// order. A message is lost if its receiver is not connected, so senders must cope with losses.
//
// Messages are sealed with a key derived from a secret that only the nodes know. An attacker who
// can use a transport but lacks the secret can withhold messages. The attacker cannot read, change,
// send, repeat or redirect them.
package bus

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// A Transport carries messages to the listeners on a channel. Implementations are safe for
// concurrent use.
type Transport interface {
	// Publish sends a message. If it returns an error, the message was not sent.
	Publish(ctx context.Context, channel string, message []byte) error

	// Listen calls receive for each message on the channels, one after the other, until ctx is done.
	// If the connection breaks, Listen reconnects.
	Listen(ctx context.Context, channels []string, receive func(message []byte))
}

const (
	maxMessage = 256 << 10 // size of a message in bytes
	maxWaiting = 4096      // length of the queue
	maxEvents  = 3072      // queue length at which events are dropped, to leave room for requests and answers
	answering  = 64        // requests of one kind from other nodes that this node answers at the same time

	sendFor   = 2 * time.Second // how long a transport may take to send a message
	askFor    = 5 * time.Second // how long a request may take, on both nodes
	restFor   = 5 * time.Second // how long a failed transport is tried only after the others
	warnEvery = time.Minute     // minimum time between log lines about refused or dropped messages
)

// Config holds the dependencies of a [Bus].
type Config struct {
	Node   string            // the name of this process, at most 255 bytes and never used by another process
	Secret [sha256.Size]byte // the secret of the installation, which never changes
	// Secrets returns the secrets that nodes share now, the newest first. If it is nil, Secret is
	// the only one.
	Secrets    func() [][sha256.Size]byte
	Transports []Transport // each message is sent through the first that works; if empty, this is the only node
	Log        *slog.Logger

	// Answered is called for each answer to this node's requests, with the time that it took. It
	// may be nil.
	Answered func(took time.Duration)
}

// A Bus is one node's end of the connection to the others. Its methods are safe for concurrent
// use, except that Handle must be called before Run.
type Bus struct {
	node       string
	sealer     *sealer
	broadcasts *sealer // seals and opens messages to all nodes
	transports []Transport
	failed     []time.Time // when each transport last failed, or zero; used only by Run
	log        *slog.Logger
	answered   func(took time.Duration)
	handlers   map[string]kindHandler
	out        chan queuedMessage

	mu    sync.Mutex
	asked map[string]question // by request id

	receiving sync.Mutex // held while a message is handled
	warned    time.Time

	sent, received   atomic.Uint64
	dropped, refused atomic.Uint64
	dropLogged       atomic.Pointer[time.Time]
}

// A question is a request from this node that has not been answered yet.
type question struct {
	node   string // the only node that may answer
	answer chan envelope
}

// A Handler handles the messages of one kind. The parameter from is the node that sent the message.
// If the message is a request, the results are its answer. Handlers of other messages are called
// one after the other, so they must not block.
type Handler = func(ctx context.Context, from string, body json.RawMessage) (answer any, err error)

// An envelope is a message in the form that transports carry.
type envelope struct {
	From   string          `json:"-"`              // the sender, whose name the seal authenticates
	Kind   string          `json:"kind,omitempty"` // "" for an answer
	ID     string          `json:"id,omitempty"`   // the same in a request and its answer
	Body   json.RawMessage `json:"body,omitempty"`
	Fault  *problem.Error  `json:"fault,omitempty"`  // in an answer: an error that clients may see
	Failed bool            `json:"failed,omitempty"` // in an answer: an error that clients must not see
}

// A queuedMessage is an encoded message waiting to be sent.
type queuedMessage struct {
	node string // the receiver
	text []byte
}

// New returns a Bus. Nothing is sent or received before Run.
func New(c Config) *Bus {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Answered == nil {
		c.Answered = func(time.Duration) {}
	}
	if c.Secrets == nil {
		c.Secrets = func() [][sha256.Size]byte { return [][sha256.Size]byte{c.Secret} }
	}

	return &Bus{
		node:       c.Node,
		sealer:     newSealer(c.Secrets, c.Node),
		broadcasts: newBroadcastSealer(c.Secrets, c.Secret, c.Node),
		transports: c.Transports,
		failed:     make([]time.Time, len(c.Transports)),
		log:        c.Log,
		answered:   c.Answered,
		handlers:   make(map[string]kindHandler),
		out:        make(chan queuedMessage, maxWaiting),
		asked:      make(map[string]question),
	}
}

// Handle makes h the handler of messages of the given kind.
func (b *Bus) Handle(kind string, h Handler) {
	b.handlers[kind] = kindHandler{h, make(chan struct{}, answering)}
}

// A kindHandler handles the messages of one kind. Each kind has its own slots. Otherwise, a node whose
// database is slow would not answer pings, and the other nodes would treat it as lost.
type kindHandler struct {
	handle Handler
	slots  chan struct{} // has one entry for each request being answered
}

// Alone reports whether this is the only node, because the bus has no transports.
func (b *Bus) Alone() bool { return len(b.transports) == 0 }

// Sent returns how many messages were sent to other nodes since the process started. Received
// returns how many messages from other nodes were handled.
func (b *Bus) Sent() uint64     { return b.sent.Load() }
func (b *Bus) Received() uint64 { return b.received.Load() }

// Dropped returns how many messages could not be sent, or were requests that this node was too busy
// to answer, since the process started.
func (b *Bus) Dropped() uint64 { return b.dropped.Load() }

// Refused returns how many messages were refused since the process started. A message is refused if
// it was not sealed by another node for this node, if it is too old, or if it was received before.
func (b *Bus) Refused() uint64 { return b.refused.Load() }

// Send queues a message to a node and returns without waiting for it to be sent. If the queue has
// no room for the message, the message is dropped and counted.
func (b *Bus) Send(node, kind string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		b.drop(kind, err)
		return
	}
	if len(b.out) >= maxEvents {
		b.drop(kind, errFull) // the rest of the queue is reserved for requests and answers
		return
	}
	if err := b.enqueue(node, envelope{Kind: kind, Body: body}); err != nil {
		b.drop(kind, err)
	}
}

// Broadcast queues a message to all other nodes, and returns without waiting for it to be sent.
func (b *Bus) Broadcast(kind string, v any) { b.Send(b.broadcasts.receiver, kind, v) }

// Ask sends a request to a node and decodes its answer into answer. If the node's handler fails
// with an error that clients may see, Ask returns the same error. If the node does not answer in
// time, perhaps because it has stopped, the error is problem.Unavailable.
func (b *Bus) Ask(ctx context.Context, node, kind string, v, answer any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a request to another node: %w", err)
	}
	e := envelope{Kind: kind, ID: uuid.NewString(), Body: body}

	// Register the question first, since the answer may arrive before enqueue returns.
	answers := make(chan envelope, 1)
	b.mu.Lock()
	b.asked[e.ID] = question{node: node, answer: answers}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.asked, e.ID)
	}()

	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	asked := time.Now()
	if err := b.enqueue(node, e); err != nil {
		return err
	}
	select {
	case got := <-answers:
		b.answered(time.Since(asked))
		return got.read(answer)
	case <-ctx.Done():
		return problem.New(problem.Unavailable, "temporarily_unavailable", "another server did not answer")
	}
}

// read decodes an answer.
func (e envelope) read(answer any) error {
	switch {
	case e.Fault != nil:
		return e.Fault
	case e.Failed:
		return fmt.Errorf("node %s failed to answer; its log says why", e.From)
	case len(e.Body) == 0:
		return nil
	}
	if err := json.Unmarshal(e.Body, answer); err != nil {
		return fmt.Errorf("decoding the answer of another node: %w", err)
	}
	return nil
}

// enqueue adds a message to the queue. Messages are sent in the order of the queue.
func (b *Bus) enqueue(node string, e envelope) error {
	text, err := json.Marshal(e)
	switch {
	case err != nil:
		return fmt.Errorf("encoding a message: %w", err)
	case len(text) > maxMessage:
		return fmt.Errorf("a message of %d bytes: %w", len(text), errTooLarge)
	case b.Alone():
		return problem.New(problem.Unavailable, "temporarily_unavailable", "there are no other servers")
	}

	select {
	case b.out <- queuedMessage{node: node, text: text}:
		return nil
	default:
		return errFull
	}
}

// errTooLarge is the error for a message that is larger than maxMessage.
var errTooLarge = errors.New("it is too large for the bus")

// errFull is the error for a message that does not fit in the queue.
var errFull = problem.New(problem.Unavailable, "temporarily_unavailable",
	"too many messages are waiting for other servers")

// drop counts a message that could not be sent, and logs it unless another one was logged recently.
func (b *Bus) drop(kind string, err error) {
	n := b.dropped.Add(1)
	now, last := time.Now(), b.dropLogged.Load()
	if (last == nil || now.Sub(*last) > warnEvery) && b.dropLogged.CompareAndSwap(last, &now) {
		b.log.Warn("dropping messages to other nodes", "kind", kind, "error", err, "dropped", n)
	}
}

// Run sends and receives until ctx is done.
func (b *Bus) Run(ctx context.Context) {
	var listeners sync.WaitGroup
	defer listeners.Wait()
	channels := []string{b.node, b.broadcasts.receiver}
	for _, t := range b.transports {
		listeners.Go(func() {
			t.Listen(ctx, channels, func(message []byte) { b.receive(ctx, message) })
		})
	}

	for {
		select {
		case <-ctx.Done():
			return
		case m := <-b.out:
			if err := b.publish(ctx, m); err != nil && ctx.Err() == nil {
				b.drop("", err)
			}
		}
	}
}

// publish seals a message and sends it through the first transport that accepts it. If a transport
// does not answer, but a later one accepts messages, at most one message every restFor is delayed.
func (b *Bus) publish(ctx context.Context, m queuedMessage) (err error) {
	sealing := b.sealer
	if m.node == b.broadcasts.receiver {
		sealing = b.broadcasts
	}
	m.text = sealing.seal(m.node, m.text, time.Now())
	for _, i := range b.order(time.Now()) {
		if err = b.publishBy(ctx, b.transports[i], m); err == nil {
			b.failed[i] = time.Time{}
			b.sent.Add(1)
			return nil
		}
		b.failed[i] = time.Now()
	}
	return err
}

// order returns the indexes of the transports in the order in which they are tried. Transports that
// have failed within restFor come last.
func (b *Bus) order(now time.Time) []int {
	var ready, resting []int
	for i, failed := range b.failed {
		if now.Sub(failed) < restFor {
			resting = append(resting, i)
		} else {
			ready = append(ready, i)
		}
	}
	return append(ready, resting...)
}

func (b *Bus) publishBy(ctx context.Context, t Transport, m queuedMessage) error {
	ctx, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()
	return t.Publish(ctx, m.node, m.text)
}
