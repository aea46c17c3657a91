package idp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// typLogout keeps a logout token from passing for any other (OpenID Connect
// Back-Channel Logout, sections 2.4 and 4.1).
const typLogout = "logout+jwt"

// logoutEvent is what makes a token one of logout.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// logoutFor is how long a logout token is good. It is signed when it is sent.
const logoutFor = 2 * time.Minute

// logoutClaims are those of OpenID Connect Back-Channel Logout, section 2.4. There
// must be no nonce.
type logoutClaims struct {
	Issuer    string              `json:"iss"`
	Subject   string              `json:"sub"`
	Audience  string              `json:"aud"`
	IssuedAt  int64               `json:"iat"`
	Expires   int64               `json:"exp"`
	ID        string              `json:"jti"`
	SessionID string              `json:"sid"`
	Events    map[string]struct{} `json:"events"`
}

// LogoutToken signs what tells a client that a login of a subscriber has ended.
// Each token has an id of its own: one that is sent again is another, which clients
// that remember ids must not take for a replay.
func (ts *Tokens) LogoutToken(ctx context.Context, clientID, subscriberID, sid string) (string, error) {
	c, err := ts.clients.Find(ctx, clientID)
	if err != nil {
		return "", fmt.Errorf("finding client: %w", err)
	}
	now := ts.Now()
	return ts.Ring.SignUnique(c.IDTokenAlg, typLogout, logoutClaims{
		Issuer: ts.Issuer, Subject: ts.subjects.SubjectFor(c, subscriberID), Audience: c.ID, IssuedAt: now.Unix(),
		Expires: now.Add(logoutFor).Unix(),
		ID:      uuid.NewString(), SessionID: ts.subjects.SessionFor(c, sid), Events: map[string]struct{}{logoutEvent: {}},
	})
}

// checkBackchannel refuses addresses that logouts cannot be told to: beside what
// nothing is ever sent to, http of a client without a secret (OpenID Connect
// Back-Channel Logout, section 2.2).
func (cs *Clients) checkBackchannel(c Client) error {
	const param = "backchannel_logout_uri"
	uri := c.BackchannelLogoutURI
	switch {
	case uri == "" && c.BackchannelLogoutSession:
		return problem.BadParam("backchannel_logout_session_required", "a client without a %s is told nothing", param)
	case uri == "":
		return nil
	case len(uri) > maxURI:
		return problem.BadParam(param, "%s has at most %d characters", param, maxURI)
	case c.AuthMethod == AuthNone && !strings.HasPrefix(uri, "https:"):
		return problem.BadParam(param, "%q must be https; http is only for clients with a secret", uri)
	}
	return cs.CheckURL(param, uri)
}
