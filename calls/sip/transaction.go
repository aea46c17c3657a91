package sip

import (
	"net/netip"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"
)

// The timers of RFC 3261, section 17.
const (
	timerT1  = 500 * time.Millisecond // estimate of a round trip
	timerT2  = 4 * time.Second        // longest interval between repeats
	timerEnd = 64 * timerT1           // how long a transaction waits for a response
	byeEnd   = 8 * timerT1            // the same, if the response does not matter

	// answerWithin is how long an INVITE or a REGISTER waits for the first response. Callers do not wait
	// longer.
	answerWithin = timerEnd / 2

	// slowAfter is how long an INVITE waits for the first response of a gateway before it is sent to another
	// address of the gateway. A gateway that works sends the response 100 within 200 ms (RFC 3261, section
	// 17.2.1). Until slowAfter, the INVITE is sent four times over UDP. Most SIP proxies wait between 2 and
	// 5 seconds if they have another address.
	slowAfter = 5 * time.Second
)

// A serverKey identifies a request and its repeats (RFC 3261, section 17.2.3). It includes the
// source, so that others cannot cancel a request by guessing its branch.
type serverKey struct {
	branch, sender, method string
	source                 netip.Addr
}

func keyOf(r *sip.Request, f flow) serverKey {
	branch, _ := r.Via().Params.Get("branch")
	method := string(r.Method)
	if r.Method == sip.ACK || r.Method == sip.CANCEL {
		method = string(sip.INVITE)
	}
	return serverKey{branch: branch, sender: r.Via().SentBy(), method: method, source: f.source()}
}

// A serverTx is the transaction of a received request. It stores the last response, with which it
// answers repeats of the request.
type serverTx struct {
	server *Server
	key    serverKey
	flow   flow
	seq    uint32 // the request's sequence number, which the ACK repeats

	mu        sync.Mutex
	last      []byte // the last response
	final     bool
	refused   bool // last refuses the request
	canceled  bool // the phone has sent a CANCEL
	timer     *time.Timer
	pause     time.Duration
	since     time.Time // when the final response was first sent
	unread    func()    // called if nobody acknowledges the final response to an INVITE; may be nil
	awaitsACK bool      // the final response to an INVITE awaits its ACK
	then      func()    // called once awaitsACK is false; may be nil
}

// serve begins a transaction. If the request is a repeat, serve answers it, and isNew is false. t is
// nil if there are too many transactions, or if the server is closed.
func (s *Server) serve(r *sip.Request, f flow) (t *serverTx, isNew bool) {
	key := keyOf(r, f)
	s.mu.Lock()
	t = s.served[key]
	if t == nil && len(s.served) < maxTransactions && !s.closed {
		t = &serverTx{server: s, key: key, flow: f, seq: r.CSeq().SeqNo}
		t.timer = s.after(calledFor, t.end)
		s.served[key] = t
		isNew = true
	}
	s.mu.Unlock()
	if t != nil && !isNew {
		t.repeat()
	}
	return t, isNew
}

// handleOnce calls handle, unless the same request is being handled. Before a request has a
// transaction, its repeat would fail, because the credentials in it are valid only once. The phone
// would then take the challenge for the response to its request. Once the request has a
// transaction, a repeat gets the last response again.
func (s *Server) handleOnce(r *sip.Request, f flow, handle func()) {
	key := keyOf(r, f)
	s.mu.Lock()
	isRepeat := s.handling[key]
	s.handling[key] = true
	t := s.served[key]
	s.mu.Unlock()
	if isRepeat && t != nil {
		t.repeat()
	}
	if isRepeat {
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.handling, key)
	}()
	handle()
}

// after calls do once d has passed. A panic in do does not end the process.
func (s *Server) after(d time.Duration, do func()) *time.Timer {
	return time.AfterFunc(d, func() {
		defer s.recoverPanic()
		do()
	})
}

// calledFor is how long a request may wait for its final response. By default, calls ring for a
// minute.
const calledFor = 15 * time.Minute

// find returns the transaction of a request, or nil if the request is not a repeat. For an ACK or
// CANCEL, it returns the transaction of the INVITE.
func (s *Server) find(r *sip.Request, f flow) *serverTx {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served[keyOf(r, f)]
}

func (t *serverTx) repeat() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil {
		t.flow.write(t.last)
	}
}

// respond sends a response. It repeats a final response to an INVITE until acknowledge is called.
// If acknowledge is not called in time, unread is called.
func (t *serverTx) respond(r *sip.Response, unread func()) {
	b := []byte(r.String())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.final {
		return
	}

	t.server.counters.sent.add(r.StatusCode)
	t.last = b
	t.final = r.StatusCode >= 200
	t.refused = r.StatusCode >= 300
	t.flow.write(b)
	if !t.final {
		return
	}

	t.timer.Stop()
	if t.key.method != string(sip.INVITE) {
		t.timer = t.server.after(timerEnd, t.end)
		return
	}

	t.unread = unread
	t.awaitsACK = true
	t.pause = timerT1
	t.since = time.Now()
	t.timer = t.server.after(t.pause, t.tick)
}

// tick repeats the final response to an INVITE, or ends the transaction if no ACK arrives in time.
func (t *serverTx) tick() {
	t.mu.Lock()
	if !t.awaitsACK { // the ACK arrived in the meantime, and set another timer
		t.mu.Unlock()
		return
	}
	if time.Since(t.since) >= timerEnd {
		unread := t.unread
		then := t.settle()
		t.mu.Unlock()
		t.end()
		if unread != nil {
			unread()
		}
		then()
		return
	}
	defer t.mu.Unlock()

	// A 200 is repeated over TCP, too, because a proxy may have passed it on over UDP (RFC 3261,
	// section 13.3.1.4).
	if t.flow.udp != nil || !t.refused {
		t.flow.write(t.last)
	}
	t.pause = min(2*t.pause, timerT2)
	t.timer = t.server.after(t.pause, t.tick)
}

// acknowledge stops repeating the final response. Repeats of the request are still answered for a
// few seconds.
func (t *serverTx) acknowledge() {
	t.mu.Lock()
	if !t.awaitsACK {
		t.mu.Unlock()
		return
	}
	t.timer.Stop()
	t.timer = t.server.after(timerT2+timerT1, t.end)
	then := t.settle()
	t.mu.Unlock()
	then()
}

// cancel records that the phone has sent a CANCEL.
func (t *serverTx) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.canceled = true
}

// isCanceled reports whether the phone has sent a CANCEL.
func (t *serverTx) isCanceled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.canceled
}

// stopAccepting stops waiting for the ACK to a 200, which can no longer find the dialog. The ACK to a
// refusal finds the transaction by itself, so a refusal is still repeated (RFC 3261, section 17.2.1).
func (t *serverTx) stopAccepting() {
	t.mu.Lock()
	refused := t.refused
	t.mu.Unlock()
	if !refused {
		t.acknowledge()
	}
}

// settle stops waiting for the ACK. It returns the function to call once mu is released. The caller
// holds mu.
func (t *serverTx) settle() (then func()) {
	then = t.then
	t.awaitsACK = false
	t.then = nil
	if then == nil {
		return func() {}
	}
	return then
}

// afterACK reports whether an ACK is awaited. If so, do is called when it arrives, or when the
// transaction times out.
func (t *serverTx) afterACK(do func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.awaitsACK {
		t.then = do
	}
	return t.awaitsACK
}

// isAwaitingACK reports whether the final response to an INVITE has no ACK yet.
func (t *serverTx) isAwaitingACK() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.awaitsACK
}

func (t *serverTx) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
}

// end deletes the transaction.
func (t *serverTx) end() {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	delete(t.server.served, t.key)
}
