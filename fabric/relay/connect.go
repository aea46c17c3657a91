package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/cnf"
	"github.com/selvage/selvage/internal/problem"
)

// An authentication holds the token with which a client authenticates.
type authentication struct {
	Authentication struct {
		Project string `json:"project"`
		Token   string `json:"jwt_token"`
		Proof   string `json:"dpop_token"`
	} `json:"authentication"`
	Proof string `json:"dpop_token"` // SDKs send the proof in either place
}

// connectParams contains the parameters of signalwire.connect.
type connectParams struct {
	authentication
	Protocol string          `json:"protocol"` // the protocol of the client's previous socket
	State    json.RawMessage `json:"authorization_state"`
}

// A connectResult is the result of signalwire.connect and signalwire.reauthenticate.
type connectResult struct {
	Identity      string        `json:"identity"`
	Protocol      string        `json:"protocol"`
	Authorization authorization `json:"authorization"`
	ICEServers    []ICEServer   `json:"ice_servers"`
}

// An authorization describes the token of a socket.
type authorization struct {
	JTI        string           `json:"jti"`
	ProjectID  string           `json:"project_id"`
	Subscriber fabricSubscriber `json:"fabric_subscriber"`
}

// A fabricSubscriber describes the holder of a token.
type fabricSubscriber struct {
	Version       int    `json:"version"`
	SubscriberID  string `json:"subscriber_id"` // "" for guests
	ApplicationID string `json:"application_id"`
	ProjectID     string `json:"project_id"`
	SpaceID       string `json:"space_id"`   // always "", because selvage has no spaces
	ExpiresAt     int64  `json:"expires_at"` // Unix seconds
}

// connect serves signalwire.connect. Afterwards, the socket acts for the holder of the token.
func connect(ctx context.Context, s *socket, raw json.RawMessage) (any, error) {
	var in connectParams
	if err := decodeParams(raw, &in); err != nil {
		return nil, err
	}
	if _, already := s.authenticated(); already {
		return nil, &fault{invalidRequest,
			"this socket is already connected; use signalwire.reauthenticate to change its token"}
	}

	// Read this before checking the token, so that the watch notices every later revocation.
	heard := s.relay.fabric.Tokens.Heard()
	token, err := s.openToken(ctx, "signalwire.connect", in.authentication)
	if err != nil {
		return nil, s.retryable(err)
	}

	// lost is the id of the client's previous socket, or "".
	lost, ours := socketOf(in.Protocol)
	if !ours || isPresent(in.State) { // we never issue authorization states
		return nil, notValid()
	}

	if !s.relay.countCaller(token.Caller(), "") {
		return nil, tooMany()
	}
	if err := s.relay.fabric.EmbedKeys.AdmitSocket(ctx, token); err != nil {
		s.relay.uncountCaller(token.Caller())
		return nil, err
	}

	id := uuid.NewString()
	s.setAuthenticated(id, token, heard)
	if lost != "" {
		if err := s.resume(ctx, lost); err != nil {
			return nil, err
		}
	}
	return s.showConnection(id, token), nil
}

// resume makes the socket take over the presence and the calls of the client's previous socket. lost is
// the id of that socket. The new socket must already receive events. Otherwise, the invitation of a call
// that begins meanwhile would be dropped.
func (s *socket) resume(ctx context.Context, lost string) error {
	client := s.client()
	wasOnline, err := s.relay.fabric.Presence.Resume(ctx, client.Token, lost, client.Socket.ID)
	if err != nil {
		return s.retryable(err)
	}
	if wasOnline {
		s.setOnline(true)
	}
	if s.relay.calls != nil {
		s.relay.calls.Moved(ctx, calls.Socket{Node: s.relay.node, ID: lost}, client)
	}
	return nil
}

// setAuthenticated marks the socket as authenticated, and then registers it at the relay. The locks
// of the socket and of the relay are never held together.
func (s *socket) setAuthenticated(id string, token fabric.Token, heard int64) {
	s.relay.release(s.from)
	s.relay.connected.Add(1)
	s.conn.SetReadLimit(maxMessage)

	s.mu.Lock()
	s.id = id
	s.setToken(token, heard)
	s.mu.Unlock()

	s.relay.register(s, id, token)
}

// setToken sets the token of the socket. heard is the result of Tokens.Heard from before the token
// was checked. s.mu must be held.
func (s *socket) setToken(token fabric.Token, heard int64) {
	s.caller = token.Caller()
	s.token = token
	s.heard = heard
}

// register makes an authenticated socket receive events and messages.
func (r *Relay) register(s *socket, id string, token fabric.Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.named[id] = s
	r.readers.add(s, token)
}

// tooMany is the error for a caller that has too many open sockets.
func tooMany() error { return &fault{refused, "too many sockets are open with this token"} }

// reauthenticate serves signalwire.reauthenticate. It replaces the token with a newer token for the
// same holder. If the new token is invalid or has another holder, reauthenticate refuses it and
// changes nothing.
func reauthenticate(ctx context.Context, s *socket, raw json.RawMessage) (any, error) {
	var in authentication
	if err := decodeParams(raw, &in); err != nil {
		return nil, err
	}

	// Read this before checking the token, so that the watch notices every later revocation.
	heard := s.relay.fabric.Tokens.Heard()
	token, err := s.openToken(ctx, "signalwire.reauthenticate", in)
	if err != nil {
		return nil, err
	}

	old, _ := s.authenticated()
	isSameHolder := token.Kind == old.Kind && token.ProjectID == old.ProjectID &&
		token.SubscriberID == old.SubscriberID
	if !isSameHolder {
		return nil, notValid()
	}

	// A socket whose token comes from another embed key counts as a new socket of that key.
	if token.KeyID != old.KeyID {
		err = s.relay.fabric.EmbedKeys.AdmitSocket(ctx, token)
		if err != nil {
			return nil, err
		}
	}

	// Nothing after this can fail, so the count never has to be undone.
	if !s.relay.countCaller(token.Caller(), old.Caller()) {
		return nil, tooMany()
	}

	s.relay.setReader(s, old, token)
	s.replaceToken(token, heard)
	client := s.client()
	if s.relay.calls != nil {
		s.relay.calls.Moved(ctx, client.Socket, client) // the socket is the same; only the token is new
	}
	return s.showConnection(client.Socket.ID, token), nil
}

// replaceToken replaces the token of an authenticated socket.
func (s *socket) replaceToken(token fabric.Token, heard int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setToken(token, heard)
	s.onlineAt = time.Time{} // renew presence immediately, for the new token's lifetime
}

// openToken validates the token of an authentication and returns the token's claims. A token that
// is bound to a key needs a proof made for method. A token that is bound to a certificate needs a
// socket that was opened with the certificate.
func (s *socket) openToken(ctx context.Context, method string, in authentication) (fabric.Token, error) {
	if in.Authentication.Token == "" {
		return fabric.Token{}, badParams("params.authentication.jwt_token is required")
	}
	token, err := s.relay.fabric.Tokens.Open(ctx, in.Authentication.Token, fabric.SAT, fabric.Guest, fabric.Invite)
	if err != nil {
		return fabric.Token{}, err
	}

	project := in.Authentication.Project
	if project != "" && !strings.EqualFold(project, token.ProjectID) {
		return fabric.Token{}, problem.NoCredentials().Because("the token belongs to another project")
	}

	if cnf.IsKey(token.Binding) {
		proof := cmp.Or(in.Proof, in.Authentication.Proof)
		err = s.relay.confirm(ctx, method, proof, token.Binding)
		return token, err
	}
	if cnf.IsCertificate(token.Binding) && token.Binding != s.certificate {
		return fabric.Token{}, problem.NoCredentials().Because("the socket lacks the certificate of the token")
	}
	return token, nil
}

// retryable returns err if the token or the request caused it. For any other error, it returns a
// farewell, which closes the socket. SDKs reconnect after their socket is closed, but not after an
// error.
func (s *socket) retryable(err error) error {
	if errors.Is(err, problem.Unauthenticated) {
		return err
	}
	if _, asked := faultOf(err); asked && !errors.Is(err, problem.Unavailable) {
		return err
	}
	s.relay.log.Warn("a socket must retry later", "request_id", s.name, "error", err)
	return &farewell{code: websocket.StatusTryAgainLater, reason: "try again later"}
}

// protocolOf returns the protocol, which is the name by which SDKs remember a socket. SDKs compare
// its second part with the token's id, and send the whole name when they reconnect.
func protocolOf(t fabric.Token, id string) string { return "signalwire_" + t.ID + "_" + id }

// socketOf returns the id of the socket in protocol, or "" for an empty protocol. ours reports
// whether protocol is empty or was returned by protocolOf.
func socketOf(protocol string) (id string, ours bool) {
	if protocol == "" {
		return "", true
	}
	parts := strings.Split(protocol, "_")
	if len(parts) != 3 || parts[0] != "signalwire" {
		return "", false
	}
	u, err := uuid.Parse(parts[2])
	return u.String(), err == nil
}

// isPresent reports whether a member was sent and is neither null nor "".
func isPresent(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != `""`
}

// showConnection returns the result for a socket with this id and token.
func (s *socket) showConnection(id string, t fabric.Token) connectResult {
	servers := []ICEServer{}
	if s.relay.iceServers != nil {
		servers = append(servers, s.relay.iceServers(t)...)
	}

	return connectResult{
		Identity:   id,
		Protocol:   protocolOf(t, id),
		ICEServers: servers,
		Authorization: authorization{
			JTI:       t.ID,
			ProjectID: t.ProjectID,
			Subscriber: fabricSubscriber{
				Version:       1,
				SubscriberID:  t.SubscriberID,
				ApplicationID: t.ClientID,
				ProjectID:     t.ProjectID,
				ExpiresAt:     t.ExpiresAt.Unix(),
			},
		},
	}
}
