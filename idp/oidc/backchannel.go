package oidc

import (
	"context"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/deliver"
)

// LogoutWriter returns a function that writes logout requests to clients (OpenID Connect
// Back-Channel Logout, section 2.5). The function signs a new token for each attempt, so that the
// token is valid even if the client was unreachable for a long time.
func LogoutWriter(p *idp.Provider) func(context.Context, deliver.Receiver) (deliver.Write, error) {
	return func(_ context.Context, r deliver.Receiver) (deliver.Write, error) {
		return func(ctx context.Context, j deliver.Job) (deliver.Message, error) {
			token, err := p.Tokens.LogoutToken(ctx, r.ID, j.Subject, j.ID)
			return deliver.Message{
				Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
				Body:   []byte(url.Values{"logout_token": {token}}.Encode()),
			}, err
		}, nil
	}
}

// LogoutVerdict classifies the response to a logout (OpenID Connect Back-Channel Logout, section
// 2.8). Statuses 200 and 204 mean success; some frameworks send 204 for an empty response. Status
// 400 means that the client rejected the token, and 410 that the URL is gone. Both are final,
// because a retry would fail in the same way. After any other status, the logout is retried.
func LogoutVerdict(status int) deliver.State {
	switch status {
	case http.StatusOK, http.StatusNoContent:
		return deliver.Delivered
	case http.StatusBadRequest, http.StatusGone:
		return deliver.Dead
	}
	return deliver.Pending
}
