package relay

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"time"
)

// patience is the maximum duration of a request.
const patience = 5 * time.Second

// A method serves one kind of request. If its error is a farewell, the socket is closed and the
// client gets no response.
type method func(ctx context.Context, s *socket, raw json.RawMessage) (result any, err error)

// served returns all methods, by name.
func served() map[string]method {
	all := map[string]method{
		"signalwire.connect":        connect,
		"signalwire.ping":           ping,
		"signalwire.reauthenticate": checked(reauthenticate),
		"subscriber.offline":        checked(goOffline),
		"subscriber.online":         checked(goOnline),
		"webrtc.verto":              checked(verto),
		"call.layout.list":          checked(listLayouts),
		"call.move":                 checked(moveCall),
	}
	for name, op := range memberMethods {
		all[name] = checked(memberMethod(op))
	}
	return all
}

// checked wraps m so that it requires a socket that has authenticated and whose token is valid.
func checked(m method) method {
	return func(ctx context.Context, s *socket, raw json.RawMessage) (any, error) {
		token, ok := s.authenticated()
		if !ok {
			return nil, &fault{authenticationFailed, "Authentication failed: signalwire.connect comes first"}
		}
		if err := s.relay.fabric.Tokens.Check(ctx, token); err != nil {
			return nil, err
		}
		return m(ctx, s, raw)
	}
}

// unknown is the method that Observe gets for a message that does not name a served method.
const unknown = "unknown"

// receive handles a message in a separate goroutine and waits for the goroutine. The reading
// goroutine thus keeps its small stack. receive returns false after a panic.
func (s *socket) receive(text []byte) (ok bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				s.relay.log.Error("panic", "request_id", s.name, "cause", cause, "stack", string(debug.Stack()))
			}
		}()
		s.handle(text)
		ok = true
	}()
	<-done
	return ok
}

func (s *socket) handle(text []byte) {
	m, err := parse(text)
	if err != nil {
		f, _ := faultOf(err)
		s.relay.observe(unknown, f.label())
		s.out.send(response(nil, nil, f))
		return
	}

	leaving := s.heardOf()
	switch {
	case m.Method == "": // a response from the client
		if leaving != nil && string(m.ID) == `"`+leaving.id+`"` {
			s.out.close(*leaving)
		}
	case leaving == nil: // a leaving client gets no more answers
		s.answer(m)
	}
}

// heardOf records that the client is alive. If the client was asked to disconnect, heardOf returns
// the farewell. Otherwise it returns nil.
func (s *socket) heardOf() (leaving *farewell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoke = time.Now()
	return s.leaving
}

func (s *socket) answer(m message) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name := m.Method
	serve, ok := s.relay.methods[name]
	if !ok {
		name, serve = unknown, noSuchMethod
	}

	// Events that the request causes wait until it is answered.
	s.events.hold()
	defer s.releaseEvents()

	result, err := serve(ctx, s, m.Params)
	if err == nil {
		s.relay.observe(name, "ok")
		s.reply(m, response(m.ID, result, nil))
		return
	}

	f, known := faultOf(err)
	s.relay.observe(name, f.label())
	if !known {
		s.relay.log.Error("internal error", "request_id", s.name, "method", name, "error", err)
	}

	// A farewell closes the socket. The SDK then reconnects by itself.
	var bye *farewell
	if errors.As(err, &bye) {
		s.out.close(*bye)
		return
	}

	s.reply(m, response(m.ID, nil, f))
}

// reply sends a response, unless the request was a notification (JSON-RPC 2.0, section 4.1).
func (s *socket) reply(m message, text []byte) {
	if len(m.ID) > 0 {
		s.out.send(text)
	}
}

func noSuchMethod(context.Context, *socket, json.RawMessage) (any, error) {
	return nil, &fault{methodNotFound, "unknown method"}
}

// done is the result of methods that have nothing to return.
var done = struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}{"200", "OK"}

// ping serves signalwire.ping, with which a client checks that the server is alive. If the request
// has a timestamp, ping returns it.
func ping(_ context.Context, _ *socket, raw json.RawMessage) (any, error) {
	var in struct {
		Timestamp json.RawMessage `json:"timestamp"`
	}
	if err := decodeParams(raw, &in); err != nil {
		return nil, err
	}
	if len(in.Timestamp) == 0 || !isID(in.Timestamp) {
		return beat{unixNow()}, nil
	}
	return in, nil
}

// A beat is the content of a ping, a Unix time in seconds.
type beat struct {
	Timestamp float64 `json:"timestamp"`
}

func unixNow() float64 { return float64(time.Now().UnixMilli()) / 1000 }

// goOnline serves subscriber.online. Afterwards, calls to the subscriber reach this socket.
func goOnline(ctx context.Context, s *socket, _ json.RawMessage) (any, error) {
	s.presence.Lock()
	defer s.presence.Unlock()
	token, online := s.attendance()
	if online {
		return done, nil // Run renews the presence
	}
	if err := s.relay.fabric.Presence.Online(ctx, token, s.id); err != nil {
		return nil, err
	}
	s.setOnline(true)
	return done, nil
}

// goOffline serves subscriber.offline. Afterwards, calls to the subscriber no longer reach this
// socket.
func goOffline(ctx context.Context, s *socket, _ json.RawMessage) (any, error) {
	s.presence.Lock()
	defer s.presence.Unlock()
	token, online := s.attendance()
	if !online {
		return done, nil
	}
	if err := s.relay.fabric.Presence.Offline(ctx, token, s.id); err != nil {
		return nil, err
	}
	s.setOnline(false)
	return done, nil
}
