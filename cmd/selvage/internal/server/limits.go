package server

import (
	"net/http"
	"time"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
)

// rates returns the limits of the configuration as they are counted.
func rates(c config.Config) limit.Rates {
	l := c.Limits
	return limit.Rates{
		limit.LoginPerAccount:       loginRate(int(l.LoginPerAccount)),
		limit.LoginPerDevice:        loginRate(int(l.LoginPerAccount)),
		limit.LoginPerNetwork:       limit.Of(int(l.LoginPerNetwork), 15*time.Minute),
		limit.LoginPerRange:         limit.Of(int(l.LoginPerRange), 15*time.Minute),
		limit.AuthorizePerNetwork:   limit.Of(int(l.AuthorizePerNetwork), time.Minute),
		limit.TokenPerClient:        limit.Of(int(l.TokenPerClient), time.Minute),
		limit.RegisterPerNetwork:    limit.Of(int(l.RegisterPerNetwork), time.Hour),
		limit.MailPerAddress:        limit.Of(int(l.MailPerAddress), time.Hour),
		limit.MailPerNetwork:        limit.Of(int(l.MailPerNetwork), time.Hour),
		limit.APIRequests:           limit.Of(int(l.APIRequests), time.Minute),
		limit.APIWrites:             limit.Of(int(l.APIWrites), time.Minute),
		limit.MediaMissesPerNetwork: limit.Of(int(l.MediaMissesPerNetwork), time.Minute),
	}
}

// loginRate lets n passwords be tried at once and one and a half times as many an
// hour: with the default of 10 no more than 25 within any hour, one in four minutes.
func loginRate(n int) session.Rate {
	return session.Rate{Burst: n, Every: limit.Of(n, 40*time.Minute).Every}
}

// admit counts a request of whoever has shown to be somebody: an API key, a client,
// the subject of a token.
func (a *App) admit(r *http.Request, who string) error {
	if err := a.limits.Pass(r.Context(), limit.APIRequests, who); err != nil {
		return err
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	return a.limits.Pass(r.Context(), limit.APIWrites, who)
}

// miss counts a request for media before it is known whether there is any; found
// takes it back.
func (a *App) miss(r *http.Request) (found func(), err error) {
	from := web.Network(r)
	return func() { a.limits.Unpass(limit.MediaMissesPerNetwork, from) },
		a.limits.Pass(r.Context(), limit.MediaMissesPerNetwork, from)
}
