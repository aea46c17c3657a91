package bus

import (
	"context"
	"encoding/json"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// receive handles a message from a transport.
func (b *Bus) receive(ctx context.Context, sealed []byte) {
	b.receiving.Lock() // transports call receive concurrently
	defer b.receiving.Unlock()
	isBroadcast := len(sealed) > 0 && sealed[0] == toAll
	opening := b.sealer
	if isBroadcast {
		opening = b.broadcasts
	}

	from, text, err := opening.open(sealed, time.Now())
	if err != nil {
		b.refuse(err)
		return
	}
	if isBroadcast && from == b.node {
		return // this node has sent it
	}

	e := envelope{From: from}
	if err := json.Unmarshal(text, &e); err != nil {
		b.log.Warn("ignoring a message from another node", "error", err)
		return
	}

	b.received.Add(1)
	if e.Kind == "" {
		b.takeAnswer(e)
		return
	}

	h := b.handlers[e.Kind]
	if h == nil {
		return // a newer version may have sent it
	}
	if e.ID == "" {
		if _, err := h(ctx, e.From, e.Body); err != nil {
			b.log.Error("handling a message from another node", "kind", e.Kind, "error", err)
		}
		return
	}

	select {
	case b.slots <- struct{}{}:
		go func() {
			defer func() { <-b.slots }()
			b.answer(ctx, h, e)
		}()
	default: // the node is busy: the caller gets no answer and may try again
		b.dropped.Add(1)
	}
}

// refuse counts a message that cannot be trusted. The caller must hold b.receiving.
func (b *Bus) refuse(err error) {
	n := b.refused.Add(1)
	if now := time.Now(); now.Sub(b.warned) > warnEvery {
		b.warned = now
		b.log.Warn("ignoring a message between nodes", "reason", err, "ignored", n)
	}
}

// takeAnswer passes an answer to the request that is waiting for it, if the answer comes from the
// node that was asked.
func (b *Bus) takeAnswer(e envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q, ok := b.asked[e.ID]; ok && q.node == e.From {
		delete(b.asked, e.ID)
		q.answer <- e // never blocks: the channel has room for one answer
	}
}

// answer answers a request.
func (b *Bus) answer(ctx context.Context, h Handler, e envelope) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	answer, err := h(ctx, e.From, e.Body)

	reply := envelope{ID: e.ID}
	switch p := problem.First(err); {
	case p != nil:
		reply.Fault = p
	case err != nil:
		b.log.Error("answering another node", "kind", e.Kind, "error", err)
		reply.Failed = true
	default:
		if reply.Body, err = json.Marshal(answer); err != nil {
			reply.Failed = true
		}
	}

	if err := b.enqueue(e.From, reply); err != nil {
		b.drop(e.Kind, err)
	}
}
