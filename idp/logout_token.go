package idp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
)

// typLogout distinguishes logout tokens from all other tokens (OpenID Connect Back-Channel Logout,
// sections 2.4 and 4.1).
const typLogout = "logout+jwt"

// logoutEvent is the event that identifies a logout token.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// logoutFor is how long a logout token is valid. The token is signed when it is sent.
const logoutFor = 2 * time.Minute

// logoutClaims are the claims of OpenID Connect Back-Channel Logout, section 2.4. A nonce is
// forbidden.
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

// LogoutToken returns a signed token that informs a client of the end of a subscriber's login. Each
// token has its own id, even if a logout is sent again. Clients that remember ids therefore do not
// mistake the second token for a replay.
func (ts *Tokens) LogoutToken(ctx context.Context, clientID, subscriberID, sid string) (string, error) {
	c, err := ts.clients.Find(ctx, clientID)
	if err != nil {
		return "", fmt.Errorf("finding client: %w", err)
	}
	now := ts.Now()
	return ts.Ring.SignUnique(c.IDTokenAlg, typLogout, logoutClaims{
		Issuer:    ts.Issuer,
		Subject:   ts.subjects.SubjectFor(c, subscriberID),
		Audience:  c.ID,
		IssuedAt:  now.Unix(),
		Expires:   now.Add(logoutFor).Unix(),
		ID:        uuid.NewString(),
		SessionID: ts.subjects.SessionFor(c, sid),
		Events:    map[string]struct{}{logoutEvent: {}},
	})
}

// checkBackchannel returns an error if logouts cannot be sent to the client's URI. This is the case
// if selvage may not send requests to the URI, or the URI is too long. It is also the case if the
// URI is http and the client does not authenticate (OpenID Connect Back-Channel Logout, section
// 2.2). A client without a URI must not require sid in logouts.
func (cs *Clients) checkBackchannel(c Client) error {
	const param = "backchannel_logout_uri"
	uri := c.BackchannelLogoutURI
	switch {
	case uri == "" && c.BackchannelLogoutSession:
		return problem.BadParam("backchannel_logout_session_required",
			"a client without a %s receives no logouts", param)
	case uri == "":
		return nil
	case len(uri) > maxURI:
		return problem.BadParam(param, "%s must have at most %d characters", param, maxURI)
	case c.AuthMethod == AuthNone && !strings.HasPrefix(uri, "https:"):
		return problem.BadParam(param, "%q must be https; http is only for clients with a secret", uri)
	}
	return cs.CheckURL(param, uri)
}
