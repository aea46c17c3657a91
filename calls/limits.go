package calls

import (
	"cmp"
	"time"

	"golang.org/x/time/rate"

	"github.com/selvage/selvage/internal/problem"
)

// LongestCall is how long a call may last if [Limits] contains no other time.
const LongestCall = 4 * time.Hour

// Limits holds the limits of callers, embed keys and projects. A zero field means the default,
// which is at the end of the field's comment. A negative count means no limit. Ring and Most must
// not be negative.
type Limits struct {
	PerHolder  int // legs of one subscriber or guest token, except ringing legs; 10
	PerEmbed   int // legs of one embed key; 100
	PerProject int // legs of one project; 1,000
	Ringing    int // calls that ring one subscriber at the same time; 3

	Ring time.Duration // how long a call rings; 1 minute
	Most time.Duration // how long a call may last; LongestCall

	Gateway  GatewayLimits
	Outbound OutboundLimits
}

// GatewayLimits limits the calls from each SIP gateway.
type GatewayLimits struct {
	Running   int // calls at a time; 200
	PerSecond int // new calls per second, with bursts of ten times as many; 10
}

// How long a client may be unreachable before its leg ends.
const (
	comeBack     = 60 * time.Second // without a socket, for example while a laptop sleeps
	goneAfter    = 15 * time.Second // without a socket and without media
	attachWithin = 30 * time.Second // without a socket, after another node has taken over the call
	noMedia      = 30 * time.Second // without media, in an answered call
)

// dialLimit returns the limit on how fast one account may dial: once a second, in bursts of up to
// 5.
func dialLimit() *rate.Limiter { return rate.NewLimiter(1, 5) }

// embedLimit is like dialLimit, for an embed key: twice a second, in bursts of up to 20.
func embedLimit() *rate.Limiter { return rate.NewLimiter(2, 20) }

// gatewayLimit returns the limit on how fast calls from one gateway may begin.
func (l GatewayLimits) gatewayLimit() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(l.PerSecond), 10*l.PerSecond)
}

// wideLimit returns the limit for commands that affect all members of a room: once a second, in
// bursts of up to 5. Each such command sends events to all members, or lists the members.
func wideLimit() *rate.Limiter { return rate.NewLimiter(1, 5) }

// legsOf returns the maximum number of legs for an account.
func (l Limits) legsOf(a account) int {
	switch {
	case a.gateway:
		return l.Gateway.Running
	case a.embed:
		return l.PerEmbed
	}
	return l.PerHolder
}

// orDefaults returns l with the defaults in place of zero fields.
func (l Limits) orDefaults() Limits {
	l.PerHolder = orDefault(l.PerHolder, 10, unlimited)
	l.PerEmbed = orDefault(l.PerEmbed, 100, unlimited)
	l.PerProject = orDefault(l.PerProject, 1000, unlimited)
	l.Ringing = orDefault(l.Ringing, 3, unlimited)
	l.Gateway.Running = orDefault(l.Gateway.Running, 200, unlimited)
	l.Gateway.PerSecond = orDefault(l.Gateway.PerSecond, 10, unlimited)
	l.Ring = cmp.Or(l.Ring, time.Minute)
	l.Most = cmp.Or(l.Most, LongestCall)
	l.Outbound = l.Outbound.orDefaults()
	return l
}

// unlimited is a number of calls that no account reaches.
const unlimited = 1 << 26

// An account is what limits apply to: a holder of tokens, an embed key, or a gateway.
type account struct {
	id      string
	embed   bool // an embed key, which many people use
	gateway bool // a gateway, from which many people call
}

// accountsOf returns the accounts that a client counts against. Invites and guest tokens made by a
// subscriber count against the subscriber. Guest tokens made with an embed key also count against
// the key, since anyone who has the key can make more of them. The caller behind a gateway
// also counts against the gateway.
func accountsOf(client Client) []account {
	t := client.Token
	switch {
	case t.SubscriberID != "":
		return []account{{id: t.SubscriberID}}
	case t.Embedded && client.Socket.Gateway:
		return []account{{id: client.holder()}, {id: t.KeyID, gateway: true}}
	case t.Embedded:
		return []account{{id: client.holder()}, {id: t.KeyID, embed: true}}
	}
	return []account{{id: client.holder()}}
}

// An activity counts the calls and commands of one account. It is guarded by Calls.mu.
type activity struct {
	legs      int
	ringing   int            // number of ringing legs
	ringingBy map[string]int // number of ringing legs, by caller
	dials     *rate.Limiter
	rejected  *rate.Limiter // calls to addresses that cannot be called; see admitRejected
	wide      *rate.Limiter // commands that affect all members of a room
	transfers *rate.Limiter // transfers through gateways; nil before the first transfer
}

// addRinging adds n to the counts of ringing legs, in total and by caller. n may be negative.
func (a *activity) addRinging(l *leg, n int) {
	a.ringing += n
	for _, caller := range l.callers {
		if a.ringingBy == nil {
			a.ringingBy = make(map[string]int)
		}
		a.ringingBy[caller.id] += n
		if a.ringingBy[caller.id] == 0 {
			delete(a.ringingBy, caller.id)
		}
	}
}

// counts groups the methods that limit how many calls the holders of tokens may begin.
type counts struct{ *Calls }

func (c *Calls) counts() counts { return counts{c} }

// activityOf returns the activity of an account, and creates it if necessary. The caller holds
// c.mu.
func (c counts) activityOf(a account) *activity {
	act := c.accounts[a.id]
	if act == nil {
		act = &activity{dials: dialLimit(), rejected: dialLimit(), wide: wideLimit()}
		switch {
		case a.gateway:
			act.dials = c.limits.Gateway.gatewayLimit()
			act.rejected = c.limits.Gateway.gatewayLimit()
		case a.embed:
			act.dials = embedLimit()
		}
		c.accounts[a.id] = act
	}
	return act
}

// isIdle reports whether the activity can be forgotten without losing a count.
func (a *activity) isIdle(now time.Time) bool {
	return a.legs == 0 && a.ringing == 0 &&
		isFull(a.dials, now) && isFull(a.rejected, now) && isFull(a.wide, now) &&
		(a.transfers == nil || isFull(a.transfers, now))
}

// isFull reports whether l has all of its tokens, as in its initial state.
func isFull(l *rate.Limiter, now time.Time) bool { return l.TokensAt(now) >= float64(l.Burst()) }

// CheckLimits returns an error if the holder of a token may not begin a call now. It counts
// nothing.
func (c *Calls) CheckLimits(client Client) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts().check(client, time.Now())
}

// admitCall is like CheckLimits, and counts the call against the rates of its accounts.
func (c counts) admitCall(client Client) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if err := c.check(client, now); err != nil {
		return err
	}
	for _, a := range accountsOf(client) {
		c.activityOf(a).dials.AllowN(now, 1)
	}
	return nil
}

// check implements CheckLimits. The caller holds c.mu.
func (c counts) check(client Client, now time.Time) error {
	c.forgetIdle(now)
	switch {
	case c.draining:
		return &problem.Error{
			Kind:       problem.Unavailable,
			Code:       "temporarily_unavailable",
			Message:    "the server is stopping; dial again in a moment",
			RetryAfter: time.Second,
		}
	case c.projects[client.Token.ProjectID] >= c.limits.PerProject:
		return tooMany("too many calls in this project")
	}

	for _, a := range accountsOf(client) {
		switch act := c.activityOf(a); {
		case act.legs-act.ringing >= c.limits.legsOf(a):
			return tooMany("too many calls at the same time")
		case act.dials.TokensAt(now) < 1:
			return tooMany("too many calls started; try again in a moment")
		}
	}
	return nil
}

// checksPerCall is the number of accounts that forgetIdle examines when a call begins. Most
// calls add at most three accounts; a call to a ring group adds one for each member. Once three in
// sixteen accounts are idle, forgetIdle removes three per call on average. That is as many as most
// calls add, so the map stops growing.
const checksPerCall = 16

// forgetIdle removes some idle accounts, so that the map does not grow. The caller holds c.mu.
func (c counts) forgetIdle(now time.Time) {
	checked := 0
	for id, act := range c.accounts { // the order is random
		if act.isIdle(now) {
			delete(c.accounts, id)
		}
		checked++
		if checked == checksPerCall {
			return
		}
	}
}

// admitRejected counts a call that will be refused. It returns an error if the client's accounts
// have made too many of these. Each of these calls leaves a record, and pages with an embed key
// have no reason to dial many such addresses.
func (c counts) admitRejected(client Client) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, a := range accountsOf(client) {
		if !c.activityOf(a).rejected.AllowN(now, 1) {
			return tooMany("too many calls to addresses that cannot be called")
		}
	}
	return nil
}

// admitWide counts a command that affects all members of the leg's room. It returns an error if the
// leg's account has sent too many of these.
func (l *leg) admitWide() error {
	c := l.call.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counts().activityOf(l.counted[0]).wide.Allow() {
		return &problem.Error{
			Kind:       problem.RateLimited,
			Code:       "too_many_commands",
			Message:    "too many commands for the whole room; try again in a moment",
			RetryAfter: time.Second,
		}
	}
	return nil
}

func tooMany(message string) error {
	return &problem.Error{Kind: problem.RateLimited, Code: "too_many_calls", Message: message, RetryAfter: time.Second}
}

// admitMove counts the move of a call as if it were a dial. It returns problem.RateLimited above
// the limit.
func (c counts) admitMove(client Client) error {
	return c.countDial(client, "too many calls moved; try again in a moment")
}

// admitSearch counts a client's search for the node of a leg as one dial. Above the limit, it
// returns problem.RateLimited. No other limit applies, because the leg already exists.
func (c counts) admitSearch(client Client) error {
	return c.countDial(client, "too many calls started; try again in a moment")
}

// countDial counts one dial. Above the limit, it returns problem.RateLimited with the given message.
func (c counts) countDial(client Client, message string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetIdle(time.Now())
	for _, a := range accountsOf(client) {
		if !c.activityOf(a).dials.Allow() {
			return tooMany(message)
		}
	}
	return nil
}

// admitTransfer counts an attempt to transfer a call through a gateway, and reports whether the
// account that pays may make this attempt. The hourly limit on outbound calls is computed from
// the records of calls, which do not show transfers that nobody answered.
func (c counts) admitTransfer(payer string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	act := c.activityOf(account{id: payer})
	if act.transfers == nil {
		hourly := c.limits.Outbound.Hourly
		act.transfers = rate.NewLimiter(rate.Limit(float64(hourly)/time.Hour.Seconds()), hourly)
	}
	return act.transfers.Allow()
}
