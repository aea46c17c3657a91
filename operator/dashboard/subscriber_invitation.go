package dashboard

import (
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

// An invitationPart is the part of a subscriber's page about the invitation of the subscriber.
type invitationPart struct {
	Pending          bool
	Status           status
	How              string // how the subscriber gets the link
	Created, Expires time.Time
	Valid            string // how long the link in an email that has not been sent yet will be valid
	Box              string // URL of the local mailbox that has the email; "" if there is none
	New              shownOnce
}

// invitationPart returns the part about the invitation of a subscriber who may be invited.
func (a *subscriberPages) invitationPart(v *visit, s fabric.Subscriber) (*invitationPart, error) {
	p := &invitationPart{}
	i, err := a.Fabric.Subscribers.FindInvitation(v.r.Context(), v.project.ID, s.ID)
	if err != nil {
		return p, problem.IgnoreNotFound(err)
	}
	p.Pending, p.Created, p.Expires = true, i.Created, i.Expires
	p.Status = status{Kind: "warn", Word: "Pending"}
	if i.Expires.IsZero() && i.Letter != mail.Dead {
		p.Valid = validAfterSending(a.Clients.Lifetimes().InviteLink)
	}
	if !i.Expires.IsZero() && !v.now.Before(i.Expires) {
		p.Status = status{Kind: "bad", Word: "Expired"}
	}

	kept, box := a.keepsMail(v)
	switch {
	case i.To == "":
		p.How = "As a link to hand over"
	case i.Letter == mail.Dead:
		p.Status = status{Kind: "bad", Word: "Given up"}
		p.How = words.Sentences(words.Textf("The mail to %s could not be sent:", i.To), sentence(i.Error))
	case i.Letter == mail.Kept || kept && i.Letter == mail.Pending:
		p.How, p.Box = "Kept on this machine, because no mail server is set", box
	case i.Letter == mail.Pending:
		p.How = words.Textf("By mail to %s, waiting to be sent", i.To)
	default:
		p.How = words.Textf("By mail to %s", i.To)
	}
	return p, nil
}

// validAfterSending describes how long the link in an email is valid.
func validAfterSending(d time.Duration) string {
	const day = 24 * time.Hour
	if d == day {
		return "One day after it is sent"
	}
	if d%day == 0 {
		return words.Textf("%s days after it is sent", int(d/day))
	}
	return words.Textf("%s hours after it is sent", int(d.Hours()))
}

// keepsMail reports whether emails are kept on this machine instead of being sent, and returns the
// URL of the mailbox, or "" if there is none.
func (a *subscriberPages) keepsMail(v *visit) (kept bool, box string) {
	if a.Mailing == nil {
		return false, ""
	}
	s, err := a.Mailing.State(v.r.Context())
	if err != nil || s.Box == "" {
		return err == nil && s.IsKept, ""
	}
	page := v.base() + "/subscribers/" + v.r.PathValue("id")
	return s.IsKept, s.Box + "?back=" + url.QueryEscape(page)
}

// canSignIn reports whether a subscriber has a password or a passkey, or whether the project offers an
// upstream provider to sign in with.
func (a *subscriberPages) canSignIn(v *visit, s fabric.Subscriber, factors []factorRow) (bool, error) {
	if s.PasswordHash != "" {
		return true, nil
	}
	for _, f := range factors {
		if f.Type == factor.TypePasskey {
			return true, nil
		}
	}
	offered, err := a.Clients.Upstreams.Offered(v.r.Context(), v.project.ID)
	return len(offered) > 0, err
}

// hindrance describes what keeps a subscriber from signing in, or returns "" if no reason is known.
// i is the invitation, or nil.
func hindrance(s fabric.Subscriber, canSignIn bool, i *invitationPart) string {
	switch {
	case s.Disabled:
		return reasons["disabled"]
	case canSignIn:
		return ""
	case i == nil || !i.Pending:
		return "They have no password and no passkey. An invitation lets them choose a password."
	case i.Status.Kind == "bad":
		return "They have no password and no passkey, and their invitation has failed or expired. Send it again."
	}
	return "They were invited, but have not accepted yet. They have no password and no passkey."
}

// hindranceOf returns the subscriber with the given id, and what keeps this subscriber from signing
// in. Both are empty if there is no such subscriber.
func (a *subscriberPages) hindranceOf(v *visit, id string) (who entity, why string, err error) {
	s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, id)
	if err != nil {
		return who, "", problem.IgnoreNotFound(err)
	}
	var p subscriberPage
	if err := a.addFactorsAndApps(v, s, &p); err != nil {
		return who, "", err
	}
	canSignIn, err := a.canSignIn(v, s, p.Factors)
	if err != nil {
		return who, "", err
	}
	invitation, err := a.invitationPart(v, s)
	if err != nil {
		return who, "", err
	}
	row := v.subscriberRow(s)
	return entity{Name: row.Title, URL: row.URL}, hindrance(s, canSignIn, invitation), nil
}

// inviteSubscriber serves POST /dashboard/projects/{project}/subscribers/{id}/invite.
func (a *subscriberPages) inviteSubscriber(v *visit) error {
	id := v.r.PathValue("id")
	_, err := a.Fabric.Subscribers.Invite(v.r.Context(), v.project.ID, id, v.operator.Name)
	if wrong, ok := describeFaults(err); ok {
		return a.subscriberPage(v, http.StatusUnprocessableEntity, wrong, shownOnce{})
	}
	if err != nil {
		return err
	}
	if kept, _ := a.keepsMail(v); kept {
		return v.backTo(id, "invitedhere")
	}
	return v.backTo(id, "invited")
}

// shownOnce holds the secrets that a subscriber's page shows only in the response that created them.
type shownOnce struct {
	Link     string // an invitation link that an operator hands over
	Replaced string // the address to which the previous link was mailed, or ""
	Password string // a generated password
	Added    bool   // whether the same form added the subscriber
}

// handOverInvitation serves POST /dashboard/projects/{project}/subscribers/{id}/invite/link. It
// creates an invitation link for the operator to hand over. The link is shown only once.
func (a *subscriberPages) handOverInvitation(v *visit) error {
	ctx, id := v.r.Context(), v.r.PathValue("id")
	earlier, err := a.Fabric.Subscribers.FindInvitation(ctx, v.project.ID, id)
	if problem.IgnoreNotFound(err) != nil {
		return err
	}
	link, err := a.Clients.Letters.HandOver(ctx, v.project.ID, id, v.operator.Name)
	if wrong, ok := describeFaults(err); ok {
		return a.subscriberPage(v, http.StatusUnprocessableEntity, wrong, shownOnce{})
	}
	if err != nil {
		return err
	}
	once := shownOnce{Link: link}
	if !earlier.Expires.IsZero() { // otherwise the email has not been sent yet
		once.Replaced = earlier.To
	}
	return a.subscriberPage(v, http.StatusOK, nil, once)
}

// createInvited serves POST /dashboard/projects/{project}/subscribers/link. It adds a subscriber,
// and makes an invitation link for the operator to hand over. If the link cannot be created, the
// subscriber remains, and the page says why.
func (a *subscriberPages) createInvited(v *visit) error {
	ctx, in := v.r.Context(), newSubscriberInput(v)
	if in.Password != nil || v.form.Get("generate") != "" {
		return a.subscriberFault(v, a.newSubscriberForm(v), problem.BadParam("password",
			"Leave the password empty: the invitation lets them choose one."))
	}
	s, err := a.Fabric.Subscribers.Create(ctx, v.project.ID, in)
	if err != nil {
		return a.subscriberFault(v, a.newSubscriberForm(v), err)
	}

	v.r.SetPathValue("id", s.ID)
	link, err := a.Clients.Letters.HandOver(ctx, v.project.ID, s.ID, v.operator.Name)
	var wrong faults
	if err != nil {
		wrong = a.halfDone(v, "No invitation link was made.", err)
	}
	return a.subscriberPage(v, http.StatusOK, wrong, shownOnce{Link: link, Added: true})
}

// withdrawInvitation serves POST /dashboard/projects/{project}/subscribers/{id}/invite/withdraw.
func (a *subscriberPages) withdrawInvitation(v *visit) error {
	id := v.r.PathValue("id")
	err := a.Fabric.Subscribers.WithdrawInvitation(v.r.Context(), v.project.ID, id)
	if wrong, ok := describeFaults(err); ok {
		return a.subscriberPage(v, http.StatusUnprocessableEntity, wrong, shownOnce{})
	}
	if err != nil {
		return err
	}
	return v.backTo(id, "withdrawn")
}
