package server

import (
	"context"
	"net/http"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/cmd/selvage/internal/config"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/internal/web"
)

// rates converts the limits in the configuration to rates.
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
		limit.Messages:              limit.Of(int(l.Messages), time.Minute),
		limit.EmbedMessages:         limit.Of(int(l.EmbedMessages), time.Minute),
		limit.SIPPerUser:            limit.Of(int(l.SIPPerUser), 10*time.Minute),
		limit.SIPPerNetwork:         limit.Of(int(l.SIPPerNetwork), 10*time.Minute),
		limit.MediaMissesPerNetwork: limit.Of(int(l.MediaMissesPerNetwork), time.Minute),
	}
}

// outboundLimits returns the limits on calls through SIP gateways.
func outboundLimits(c config.Config) calls.OutboundLimits {
	l := c.Limits
	return calls.OutboundLimits{
		Running:        callCount(int(l.OutboundCalls)),
		ProjectRunning: callCount(int(l.OutboundCallsPerProject)),
		Hourly:         callCount(int(l.OutboundHourly)),
		ProjectHourly:  callCount(int(l.OutboundHourlyPerProject)),
		Daily:          outboundMinutes(int(l.OutboundMinutes)),
		ProjectDaily:   outboundMinutes(int(l.OutboundMinutesPerProject)),
		Longest:        outboundMinutes(int(l.OutboundLongest)),
	}
}

// gatewayLimits returns the limits on calls from SIP gateways.
func gatewayLimits(c config.Config) calls.GatewayLimits {
	return calls.GatewayLimits{
		Running:   callCount(int(c.Limits.GatewayCalls)),
		PerSecond: callCount(int(c.Limits.GatewayCallsPerSecond)),
	}
}

// callCount converts a configured number for package calls. In the configuration, 0 means
// unlimited. In package calls, -1 means unlimited and 0 means the default.
func callCount(limit int) int {
	if limit == 0 {
		return -1
	}
	return limit
}

// outboundMinutes is like callCount, but for a number of minutes.
func outboundMinutes(limit int) time.Duration {
	return time.Duration(callCount(limit)) * time.Minute
}

// loginRate returns a rate that allows the given number of wrong passwords immediately, and after that
// one and a half times as many per hour. The default of 10 therefore allows at most 25 within any hour:
// ten immediately, and then one every four minutes.
func loginRate(passwords int) session.Rate {
	return session.Rate{Burst: passwords, Every: limit.Of(passwords, 40*time.Minute).Every}
}

// admit counts a request of an authenticated caller against its limits. who identifies the API
// key, the client or the subject of a token.
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

// admitMessage counts a message against the limits of its sender. If the sender's token came from
// an embed key, it also counts the message against the limits of that key.
func (a *App) admitMessage(ctx context.Context, sender, embedKey string) error {
	counts := []limit.Count{{Name: limit.Messages, Who: sender}}
	if embedKey != "" {
		counts = append(counts, limit.Count{Name: limit.EmbedMessages, Who: embedKey})
	}
	_, err := a.limits.TakeAll(ctx, counts)
	return err
}

// countMediaMiss counts a request for media against the limit of its network for unknown media, before it
// is known whether the media exists. If the media exists, the caller calls found, which undoes the count.
func (a *App) countMediaMiss(r *http.Request) (found func(), err error) {
	network := web.Network(r)
	if err := a.limits.Pass(r.Context(), limit.MediaMissesPerNetwork, network); err != nil {
		return nil, err
	}
	return func() { a.limits.Unpass(limit.MediaMissesPerNetwork, network) }, nil
}

// countUpload counts an upload of a recording to a project.
func (a *App) countUpload(ctx context.Context, projectID string, perMinute int64) error {
	return a.limits.TakeOf(ctx, limit.Uploads, projectID, limit.Of(int(perMinute), time.Minute))
}
