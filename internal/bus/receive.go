package bus

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// receive handles a message from a transport.
func (b *Bus) receive(ctx context.Context, sealed []byte) {
	b.receiving.Lock() // transports call receive concurrently
	defer b.receiving.Unlock()

	e, ok := b.openEnvelope(sealed)
	if !ok {
		return
	}
	b.received.Add(1)
	if e.Kind == "" {
		b.takeAnswer(e)
		return
	}

	h, known := b.handlers[e.Kind]
	if !known {
		return // a newer version may have sent it
	}
	if e.ID != "" {
		b.startAnswer(ctx, h, e)
		return
	}
	if _, err := h.handle(ctx, e.From, e.Body); err != nil {
		b.log.Error("handling a message from another node", "kind", e.Kind, "error", err)
	}
}

// openEnvelope opens a sealed message. If the message must be ignored, ok is false. The caller must
// hold b.receiving.
func (b *Bus) openEnvelope(sealed []byte) (e envelope, ok bool) {
	isBroadcast := len(sealed) > 0 && sealed[0] == toAll
	opener := b.sealer
	if isBroadcast {
		opener = b.broadcasts
	}

	from, text, err := opener.open(sealed, time.Now())
	if err != nil {
		b.refuse(err)
		return envelope{}, false
	}
	if isBroadcast && from == b.node {
		return envelope{}, false // this node has sent it
	}

	e.From = from
	if err := json.Unmarshal(text, &e); err != nil {
		b.log.Warn("ignoring a message from another node", "error", err)
		return envelope{}, false
	}
	return e, true
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

// startAnswer answers a request in a new goroutine. If the node is too busy, the sender gets no
// answer, and may try again.
func (b *Bus) startAnswer(ctx context.Context, h kindHandler, request envelope) {
	select {
	case h.slots <- struct{}{}:
	default:
		b.dropped.Add(1)
		return
	}
	go func() {
		defer func() { <-h.slots }()
		b.answer(ctx, h.handle, request)
	}()
}

// answer answers a request.
func (b *Bus) answer(ctx context.Context, handle Handler, request envelope) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()

	reply := envelope{ID: request.ID}
	body, err := handle(ctx, request.From, request.Body)
	if err == nil {
		reply.Body, err = json.Marshal(body)
	}
	if err != nil {
		reply.Fault = problem.First(err)
		reply.Failed = reply.Fault == nil
	}
	if reply.Failed {
		b.log.Error("answering another node", "kind", request.Kind, "error", err)
	}

	err = b.enqueue(request.From, reply)
	if errors.Is(err, errTooLarge) {
		b.log.Error("answering another node", "kind", request.Kind, "error", err)
		err = b.enqueue(request.From, envelope{ID: request.ID, Failed: true})
	}
	if err != nil {
		b.drop(request.Kind, err)
	}
}
