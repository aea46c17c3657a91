package oidc

import (
	"context"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/deliver"
)

// LogoutWriter returns the writer of the requests of OpenID Connect Back-Channel Logout,
// section 2.5, for a deliverer whose receivers are clients. The token is signed for each
// attempt, so that it is fresh however long a client was away.
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

// LogoutVerdict classifies the response to a logout (OpenID Connect Back-Channel Logout,
// section 2.8). 200 means success, and so does the 204 that frameworks make of it. With
// 400 the client says that it has judged the token and rejects it; a retry would get the
// same answer until somebody fixes the cause.
func LogoutVerdict(status int) deliver.State {
	switch status {
	case http.StatusOK, http.StatusNoContent:
		return deliver.Delivered
	case http.StatusBadRequest, http.StatusGone:
		return deliver.Dead
	}
	return deliver.Pending
}
