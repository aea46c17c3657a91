package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/operator"
)

// A deliveryRow is a row in the list of a webhook's deliveries.
type deliveryRow struct {
	fabric.Delivery
	Path   string
	Answer string // the last response, or why there was no response
	Lasted string // how long the last attempt took
	Status status
}

func (v *visit) deliveryRow(d fabric.Delivery) deliveryRow {
	row := deliveryRow{Delivery: d, Answer: d.Error, Status: status{Kind: "warn", Word: "Pending"},
		Path: v.base() + "/webhooks/" + d.WebhookID + "/deliveries/" + d.ID}
	if d.Progress.Status != 0 {
		row.Answer = cmp.Or(d.Error, strconv.Itoa(d.Progress.Status))
	}
	if d.Took > 0 {
		row.Lasted = d.Took.Round(time.Millisecond).String()
	}
	switch d.State {
	case fabric.Delivered:
		row.Status = status{Kind: "good", Word: "Delivered"}
	case fabric.Dead:
		row.Status = status{Kind: "bad", Word: "Given up"}
	}
	return row
}

// deliveryStates are the states by which a list of deliveries can be filtered.
var deliveryStates = []choice{
	{Value: string(fabric.Pending), Title: "Pending"},
	{Value: string(fabric.Delivered), Title: "Delivered"},
	{Value: string(fabric.Dead), Title: "Given up"},
}

// showWebhook serves GET /dashboard/projects/{project}/webhooks/{id}.
func (a *webhookPages) showWebhook(v *visit) error {
	w, err := a.find(v)
	if err != nil {
		return err
	}
	return a.showWebhookPage(v, http.StatusOK, w, nil)
}

// A webhookPage shows a webhook and a page of its deliveries.
type webhookPage struct {
	list[deliveryRow]
	Webhook webhookRow
	Finder  finder
	Faults  faults
	Dead    bool // whether a delivery on this page is no longer retried
}

func (a *webhookPages) showWebhookPage(v *visit, code int, w fabric.Webhook, wrong faults) error {
	search := v.finder("", "", "", v.choiceFilter("state", "State", "All states", deliveryStates))
	state, err := deliver.ParseState(v.r.URL.Query().Get("state"))
	if err != nil {
		state = "" // an unknown state in the URL means all states
	}
	found, err := a.Fabric.Deliveries.List(v.r.Context(), v.project.ID, w.ID, state, v.query())
	if err != nil {
		return err
	}

	isDead := func(d fabric.Delivery) bool { return d.State == fabric.Dead }
	p := webhookPage{
		list:    listOf(v, found, v.deliveryRow),
		Webhook: v.webhookRow(w),
		Finder:  search,
		Faults:  wrong,
		Dead:    slices.ContainsFunc(found.Items, isDead),
	}
	return a.page(v, code, p.Webhook.Title, "webhook", p)
}

// A deliveryPage shows one delivery.
type deliveryPage struct {
	Delivery  deliveryRow
	Webhook   webhookRow
	Body      string // as indented JSON
	Live      string // URL of the event stream for the next attempt; "" if no attempt follows
	Refused   string // the address that the HTTP client refused; "" if the operator may not see it
	MayChange bool
}

// showDelivery serves GET /dashboard/projects/{project}/webhooks/{id}/deliveries/{delivery}.
func (a *webhookPages) showDelivery(v *visit) error {
	w, err := a.find(v)
	if err != nil {
		return err
	}
	d, err := a.Fabric.Deliveries.Find(v.r.Context(), v.project.ID, w.ID, v.r.PathValue("delivery"))
	if err != nil {
		return err
	}

	p := deliveryPage{
		Delivery:  v.deliveryRow(d),
		Webhook:   v.webhookRow(w),
		Body:      string(d.Body),
		MayChange: v.mayIn(operator.Write),
	}
	// Operators of a single project must not learn to which internal addresses host names resolve.
	if v.operator.Check(operator.KeepRing, "") == nil {
		p.Refused = d.Refused
	}
	if d.State == fabric.Pending {
		p.Live = v.live(deliveryMark(d))
	}
	var body bytes.Buffer
	if json.Indent(&body, d.Body, "", "  ") == nil {
		p.Body = body.String()
	}
	return a.page(v, http.StatusOK, string(d.Event), "delivery", p)
}

// deliveryMark returns a string that changes with each attempt.
func deliveryMark(d fabric.Delivery) string { return fmt.Sprint(d.State, "-", d.Attempts) }

// followDelivery serves GET /dashboard/projects/{project}/webhooks/{id}/deliveries/{delivery}/live.
func (a *webhookPages) followDelivery(v *visit) error {
	hook, id := v.r.PathValue("id"), v.r.PathValue("delivery")
	return a.follow(v, func(ctx context.Context) (string, error) {
		d, err := a.Fabric.Deliveries.Find(ctx, v.project.ID, hook, id)
		return deliveryMark(d), err
	})
}

// redeliver serves POST /dashboard/projects/{project}/webhooks/{id}/deliveries/{delivery}/redeliver.
func (a *webhookPages) redeliver(v *visit) error {
	d, err := a.Fabric.Deliveries.Redeliver(v.r.Context(), v.project.ID, v.r.PathValue("id"),
		v.r.PathValue("delivery"))
	if err != nil {
		return err
	}
	return v.redirect(v.deliveryRow(d).Path + "?done=redelivered")
}

// redeliverDead serves POST /dashboard/projects/{project}/webhooks/{id}/redeliver. It requeues all
// of the webhook's deliveries that are no longer retried.
func (a *webhookPages) redeliverDead(v *visit) error {
	w, err := a.find(v)
	if err != nil {
		return err
	}
	if _, err := a.Fabric.Deliveries.RedeliverDead(v.r.Context(), v.project.ID, w.ID); err != nil {
		return err
	}
	return v.redirect(v.webhookRow(w).Path + "?done=redelivered")
}
