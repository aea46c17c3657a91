package calls

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// Calls to phone numbers and gateways cost money. They are off by default. Projects can only call
// the numbers that their rules permit, within caps. All nodes share the caps, which are checked in
// the transaction that writes the record of the call.

// OutboundLimits caps calls that leave through SIP gateways. 0 means the default, which is at the
// end of each field's comment. A negative value means no limit.
type OutboundLimits struct {
	Running, ProjectRunning int           // calls of one caller and one project; 2 and 20
	Hourly, ProjectHourly   int           // calls begun within an hour; 30 and 200
	Daily, ProjectDaily     time.Duration // connected time within a day; 2 hours and 24 hours
	Longest                 time.Duration // length of one call; 1 hour
}

func (l OutboundLimits) orDefaults() OutboundLimits {
	const manyCalls, long = 1 << 30, 1 << 62
	l.Running = orDefault(l.Running, 2, manyCalls)
	l.ProjectRunning = orDefault(l.ProjectRunning, 20, manyCalls)
	l.Hourly = orDefault(l.Hourly, 30, manyCalls)
	l.ProjectHourly = orDefault(l.ProjectHourly, 200, manyCalls)
	l.Daily = orDefault(l.Daily, 2*time.Hour, long)
	l.ProjectDaily = orDefault(l.ProjectDaily, 24*time.Hour, long)
	l.Longest = orDefault(l.Longest, time.Hour, long)
	return l
}

// orDefault returns standard if limit is 0, and maximum if limit is negative.
func orDefault[T int | time.Duration](limit, standard, maximum T) T {
	switch {
	case limit == 0:
		return standard
	case limit < 0:
		return maximum
	}
	return limit
}

// Usage counts calls through gateways and their minutes. It includes running calls. A call counts
// once for each line that it uses.
type Usage struct {
	Running, ProjectRunning int // calls at the moment
	GatewayRunning          int // calls at the moment through the gateway of the call
	Hourly, ProjectHourly   int // calls that began within the last hour
	Daily, ProjectDaily     time.Duration
}

// The reasons why a permitted call through a gateway is refused.
const (
	reasonCallerBusy  = "too_many_calls_of_caller"
	reasonProjectBusy = "too_many_calls_of_project"
	reasonGatewayBusy = "too_many_calls_of_gateway"
	reasonCallerDay   = "minutes_of_caller_used"
	reasonProjectDay  = "minutes_of_project_used"
	reasonUnreachable = "gateway_unreachable"
	reasonNoSIP       = "sip_off"

	reasonOtherGateway = "other_gateway_in_use"
)

// check returns the cap that would be exceeded if a call used the given number of additional lines
// of a gateway, which permits at most maxCalls lines. If no cap would be exceeded, it returns "".
func (l OutboundLimits) check(u Usage, lines, maxCalls int) string {
	switch {
	case u.GatewayRunning+lines > maxCalls:
		return reasonGatewayBusy
	case u.Running+lines > l.Running, u.Hourly+lines > l.Hourly:
		return reasonCallerBusy
	case u.ProjectRunning+lines > l.ProjectRunning, u.ProjectHourly+lines > l.ProjectHourly:
		return reasonProjectBusy
	}
	return l.checkDay(u)
}

// checkDay returns the cap that prevents a call from continuing, or "".
func (l OutboundLimits) checkDay(u Usage) string {
	switch {
	case u.Daily >= l.Daily:
		return reasonCallerDay
	case u.ProjectDaily >= l.ProjectDaily:
		return reasonProjectDay
	}
	return ""
}

// after returns the usage once the running calls have continued for the given time.
func (u Usage) after(passed time.Duration) Usage {
	u.Daily += time.Duration(u.Running) * passed
	u.ProjectDaily += time.Duration(u.ProjectRunning) * passed
	return u
}

// A Trunk returns the connection to a gateway. The call goes to the phone number or, if number is
// "", to the user in the gateway's URI.
type Trunk func(ctx context.Context, g fabric.Gateway, number string) (Phone, error)

// dialOut begins a call through a gateway.
func (c *Calls) dialOut(ctx context.Context, client Client, cmd Command, from, to Party) error {
	p := planner{calls: c, project: client.Token.ProjectID}
	r := &route{ring: c.limits.Ring, payer: client.holder()}
	if from.SubscriberID != "" {
		r.payer = from.SubscriberID
	}

	if err := p.addOutside(ctx, r, to); err != nil {
		return err
	}
	switch r.refusal {
	case "":
	case reasonNoSIP:
		return c.refuseFor(ctx, client, cmd, from, to, NotImplemented, r.refusal)
	case reasonUnreachable:
		return c.refuseFor(ctx, client, cmd, from, to, TemporaryFailure, r.refusal)
	default:
		return c.refuseFor(ctx, client, cmd, from, to, CallRejected, r.refusal)
	}

	k := c.newCall(client, cmd, from, to)
	k.route = r
	return beginIn(ctx, k, func() error { return k.begin(client, cmd, Cause{}) })
}

// gatewayFor returns the gateway for a call, or the reason why the project's rules forbid the call.
func (c *Calls) gatewayFor(
	ctx context.Context, projectID string, to Party,
) (g fabric.Gateway, reason string, err error) {
	p, err := c.fabric.Projects.Find(ctx, projectID)
	if err != nil {
		return g, "", err
	}
	isNumber := to.AddressID == ""
	if isNumber {
		reason = p.MayCall(to.Address)
	} else if p.OutboundCalls != fabric.OutboundOn {
		reason = fabric.ReasonOff
	}
	if reason != "" {
		return g, reason, nil
	}

	if isNumber {
		g, err = c.fabric.Gateways.FindFor(ctx, p.ID, to.Address)
	} else {
		g, err = c.fabric.Gateways.Find(ctx, p.ID, to.GatewayID)
	}
	if errors.Is(err, problem.NotFound) {
		return g, fabric.ReasonNoGateway, nil
	}
	if errors.Is(err, fabric.ErrDamaged) { // the other parties of the route must still ring
		c.log.Error("opening the password of a SIP gateway", "gateway_id", g.ID, "error", err)
		return g, reasonUnreachable, nil
	}
	if err != nil {
		return g, "", err
	}
	if !isNumber {
		reason = p.MayCallUser(g.User)
	}
	return g, reason, nil
}

// overCap is the error for a call that exceeds a cap.
type overCap string

func (o overCap) Error() string { return "the call is over a cap: " + string(o) }

// saveFirst writes the record of a call that begins. If a call through a gateway exceeds a cap,
// saveFirst writes it as a refused call and returns the cause.
func (k *call) saveFirst(cause Cause) (Cause, error) {
	k.state = Created
	k.record.State = Created
	if !k.route.isOutside() || k.route.busy != nil || k.route.noAnswer != nil || cause != (Cause{}) {
		return cause, k.trySetState(Created)
	}
	err := k.saveOutbound(k.route)
	var over overCap
	if errors.As(err, &over) {
		k.record.Gateway = ""
		k.record.Payer = ""
		k.record.Refusal = string(over)
		return Congestion, k.trySetState(Created)
	}
	return cause, err
}

// saveOutbound writes the record of a call through the gateway of a route. If the call exceeds a
// cap, saveOutbound writes nothing and returns an overCap error.
func (k *call) saveOutbound(r *route) error {
	limits := k.calls.limits.Outbound
	k.record.Gateway = r.gateway.ID
	k.record.Payer = r.payer
	k.record.Lines = r.lines()
	if k.transfer != nil {
		if err := k.transfer.bill(&k.record); err != nil {
			return err
		}
		if !k.calls.counts().admitTransfer(r.payer) {
			return overCap(reasonCallerBusy)
		}
	}

	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	var used Usage
	err := k.calls.store.SaveOutbound(ctx, k.record, func(u Usage) error {
		used = u
		if reason := limits.check(u, k.record.Lines, r.gateway.MaxCalls); reason != "" {
			return overCap(reason)
		}
		return nil
	})
	if err != nil {
		return err
	}
	k.admitted = r
	used.Running += k.record.Lines
	used.ProjectRunning += k.record.Lines
	k.spending = spending{used, time.Now()}
	return nil
}

// A spending is the usage of the payer and the project of a call, and when it was read.
type spending struct {
	usage Usage
	read  time.Time
}

// now estimates the current usage: it adds the minutes since the usage was read. Therefore, the caps
// hold while the database is unavailable, and calls far below the caps continue.
func (s spending) now() Usage { return s.usage.after(time.Since(s.read)) }

// capsEvery is the interval at which the usage of a call through a gateway is compared with the
// caps on minutes.
const capsEvery = time.Minute

// watchCaps ends the call within a minute once the minutes of its caller or project are used up.
func (k *call) watchCaps() {
	k.capTimer = time.AfterFunc(capsEvery, func() {
		ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
		defer cancel()
		u, err := k.calls.store.OutboundUsage(ctx, k.project, k.id)
		if err != nil {
			k.calls.log.Error("reading the minutes of calls", "call_id", k.id, "error", err)
		}
		k.post(func() { k.checkCaps(u, err) })
	})
}

// checkCaps ends the call if the minutes are used up. Otherwise it schedules the next check. u is
// the usage, unless it could not be read because of err.
func (k *call) checkCaps(u Usage, err error) {
	if k.state == Completed {
		return
	}
	if err == nil {
		k.spending = spending{u, time.Now()}
	}
	if reason := k.calls.limits.Outbound.checkDay(k.spending.now()); reason != "" {
		k.record.Refusal = reason
		k.end(Congestion)
		return
	}
	k.watchCaps()
}

// termsFor returns the conditions for the media of a client.
func termsFor(s Socket) Terms {
	return Terms{Phone: s.Phone, Gateway: s.Gateway, Claimed: s.Claimed, SRTP: s.SRTP}
}
