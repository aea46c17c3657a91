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

type connectParams struct {
	authentication
	Protocol string          `json:"protocol"` // the protocol of the client's previous socket
	State    json.RawMessage `json:"authorization_state"`
}

type connectResult struct {
	Identity      string        `json:"identity"`
	Protocol      string        `json:"protocol"`
	Authorization authorization `json:"authorization"`
	ICEServers    []ICEServer   `json:"ice_servers"`
}

type authorization struct {
	JTI        string           `json:"jti"`
	ProjectID  string           `json:"project_id"`
	Subscriber fabricSubscriber `json:"fabric_subscriber"`
}

type fabricSubscriber struct {
	Version       int    `json:"version"`
	SubscriberID  string `json:"subscriber_id"` // "" for guests
	ApplicationID string `json:"application_id"`
	ProjectID     string `json:"project_id"`
	SpaceID       string `json:"space_id"`
	ExpiresAt     int64  `json:"expires_at"` // Unix seconds
}

// connect serves signalwire.connect. Afterwards, the socket acts for the holder of a token.
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

	lost, ours := socketOf(in.Protocol)
	if !ours || isPresent(in.State) { // we never issue authorization states
		return nil, notValid()
	}

	caller := token.Caller()
	if !s.relay.countCaller(caller, "") {
		return nil, tooMany()
	}
	if err := s.relay.fabric.EmbedKeys.AdmitSocket(ctx, token); err != nil {
		s.relay.uncountCaller(caller)
		return nil, err
	}

	// A client that lost its socket takes over the presence of the old socket.
	id, resumed := uuid.NewString(), false
	if lost != "" {
		if resumed, err = s.relay.fabric.Presence.Resume(ctx, token, lost, id); err != nil {
			s.relay.uncountCaller(caller)
			return nil, s.retryable(err)
		}
	}

	s.setAuthenticated(caller, id, token, heard)
	if resumed {
		s.setOnline(true)
	}
	if lost != "" && s.relay.calls != nil {
		s.relay.calls.Moved(ctx, calls.Socket{Node: s.relay.node, ID: lost}, s.client())
	}

	return s.showConnection(id, token), nil
}

// setAuthenticated marks the socket as authenticated.
func (s *socket) setAuthenticated(caller, id string, token fabric.Token, heard int64) {
	s.relay.release(s.from)
	s.relay.connected.Add(1)
	s.conn.SetReadLimit(maxMessage)
	s.mu.Lock()
	s.caller = caller
	s.id = id
	s.token = token
	s.heard = heard
	s.mu.Unlock()
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	s.relay.named[id] = s
	s.relay.readers.add(s, token)
}

// tooMany is the error for a holder of a token that has opened too many sockets.
func tooMany() error { return &fault{refused, "too many sockets are open with this token"} }

// reauthenticate serves signalwire.reauthenticate. It replaces the token with a newer token for the
// same holder. If the new token is invalid or has another holder, reauthenticate refuses it and
// changes nothing.
func reauthenticate(ctx context.Context, s *socket, raw json.RawMessage) (any, error) {
	var in authentication
	if err := decodeParams(raw, &in); err != nil {
		return nil, err
	}

	heard := s.relay.fabric.Tokens.Heard()
	token, err := s.openToken(ctx, "signalwire.reauthenticate", in)
	if err != nil {
		return nil, err
	}

	old, _ := s.authenticated()
	if token.Kind != old.Kind || token.ProjectID != old.ProjectID || token.SubscriberID != old.SubscriberID {
		return nil, notValid()
	}

	// A socket whose token comes from another embed key counts as a new socket of that key.
	if token.KeyID != old.KeyID {
		if err := s.relay.fabric.EmbedKeys.AdmitSocket(ctx, token); err != nil {
			return nil, err
		}
	}
	caller := token.Caller()
	if !s.relay.countCaller(caller, s.caller) {
		return nil, tooMany()
	}

	s.relay.read(s, old, token)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caller, s.token, s.heard = caller, token, heard
	s.onlineAt = time.Time{} // renew presence immediately, for the new token's lifetime
	if s.relay.calls != nil {
		at := calls.Socket{Node: s.relay.node, ID: s.id}
		s.relay.calls.Moved(ctx, at, calls.Client{Token: token, Socket: at})
	}
	return s.showConnection(s.id, token), nil
}

// openToken validates the token of an authentication and returns the token's claims. A token that
// is bound to a key needs a proof made for method. A token that is bound to a certificate needs a
// socket that was opened with the certificate.
func (s *socket) openToken(ctx context.Context, method string, in authentication) (fabric.Token, error) {
	if in.Authentication.Token == "" {
		return fabric.Token{}, badParams("params.authentication.jwt_token is required")
	}
	token, err := s.relay.fabric.Tokens.Open(ctx, in.Authentication.Token, fabric.SAT, fabric.Guest, fabric.Invite)
	if p := in.Authentication.Project; err == nil && p != "" && !strings.EqualFold(p, token.ProjectID) {
		err = problem.NoCredentials().Because("the token is of another project")
	}
	switch {
	case err != nil:
	case cnf.IsKey(token.Binding):
		err = s.relay.confirm(ctx, method, cmp.Or(in.Proof, in.Authentication.Proof), token.Binding)
	case token.Binding != "" && token.Binding != s.certificate:
		err = problem.NoCredentials().Because("the socket lacks the certificate of the token")
	}
	return token, err
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
