package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
)

// subscriberPages serves the pages that list, show, create and change subscribers.
type subscriberPages struct {
	*site
	Clients *idp.Provider
	Mailing *Mailing // the emails of the installation; may be nil
}

// A subscriberRow is a row in the list of subscribers.
type subscriberRow struct {
	fabric.Subscriber
	Title, URL string
	Status     status
}

func (v *visit) subscriberRow(s fabric.Subscriber) subscriberRow {
	title := cmp.Or(s.Email, s.Reference, s.ID)
	row := subscriberRow{
		Subscriber: s,
		Title:      title,
		URL:        v.base() + "/subscribers/" + s.ID,
		Status:     status{Kind: "good", Word: "Active"},
	}
	switch {
	case s.Disabled:
		row.Status = status{Kind: "bad", Word: "Disabled"}
	case s.PasswordHash == "":
		row.Status = status{Word: "No password"}
	}
	return row
}

// listSubscribers serves GET /dashboard/projects/{project}/subscribers. The query
// parameter q restricts the list to subscribers whose email, reference or name begins with it.
func (a *subscriberPages) listSubscribers(v *visit) error {
	search := v.finder("Email, name or reference", "ada", "email").exportable(v)
	query := v.query()
	if search.Query != "" {
		query = v.searchQuery()
	}
	found, err := a.findSubscribers(v, search.Query, query)
	if err != nil {
		return err
	}
	return a.page(v, http.StatusOK, "Subscribers", "subscribers", foundList[subscriberRow]{
		list:   listOf(v, found, v.subscriberRow),
		Finder: search,
	})
}

// findSubscribers returns a page of the subscribers that match text. If text is "", all match.
func (a *subscriberPages) findSubscribers(v *visit, text string, q page.Query) (page.Page[fabric.Subscriber], error) {
	if text == "" {
		return a.Fabric.Subscribers.List(v.r.Context(), v.project.ID, q)
	}
	return a.Fabric.Subscribers.Search(v.r.Context(), v.project.ID, text, q)
}

// exportSubscribers serves GET /dashboard/projects/{project}/subscribers/export.
func (a *subscriberPages) exportSubscribers(v *visit) error {
	text := v.finder("", "", "email").Query
	list := func(q page.Query) (page.Page[fabric.Subscriber], error) { return a.findSubscribers(v, text, q) }
	header := []string{"id", "email", "reference", "first_name", "last_name", "display_name", "disabled", "created"}
	return writeCSV(a.site, v, "subscribers", header, list, func(s fabric.Subscriber) []string {
		return []string{s.ID, s.Email, s.Reference, s.FirstName, s.LastName, s.DisplayName,
			strconv.FormatBool(s.Disabled), csvTime(s.Created)}
	})
}

// A subscriberPage shows one subscriber.
type subscriberPage struct {
	Subscriber subscriberRow
	Name, Base string
	Addresses  []fabric.Address
	Logins     []loginRow
	Factors    []factorRow
	Apps       []fabric.Consent
	Snippets   []snippet
	Recording  choice
	Forwarding fabric.Forwarding
	Invitation *invitationPart // nil if the subscriber cannot be invited
	SignIn     string          // URL at which the subscriber signs in
	New        shownOnce
	NoWayIn    bool   // the subscriber has nothing to sign in with
	Invited    bool   // an invitation is pending; the page's part about it shows its status
	Hindrance  string // what prevents the subscriber from signing in, or ""
	Online     bool
	MayChange  bool
	Faults     faults
}

type loginRow struct {
	fabric.Login
	Device string
	Status status
}

// showSubscriber serves GET /dashboard/projects/{project}/subscribers/{id}.
func (a *subscriberPages) showSubscriber(v *visit) error {
	err := a.subscriberPage(v, http.StatusOK, nil, shownOnce{})
	if errors.Is(err, problem.NotFound) {
		return a.deletedPage(v, http.StatusOK, nil)
	}
	return err
}

// subscriberPage shows a subscriber's page, with the secrets that were just created.
func (a *subscriberPages) subscriberPage(v *visit, code int, wrong faults, once shownOnce) error {
	ctx := v.r.Context()
	s, err := a.Fabric.Subscribers.Find(ctx, v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}

	addresses, err := a.Fabric.Subscribers.ListAddresses(ctx, v.project.ID, s.ID, page.Query{Size: page.DefaultSize})
	if err != nil {
		return err
	}

	logins, err := a.Fabric.Logins.List(ctx, v.project.ID, s.ID, page.Query{Size: 20})
	if err != nil {
		return err
	}

	presence, err := a.Fabric.Presence.Find(ctx, v.project.ID, s.ID)
	if err != nil {
		return err
	}

	p := subscriberPage{
		Subscriber: v.subscriberRow(s),
		Name:       s.FullName(),
		Base:       v.base(),
		Addresses:  addresses.Items,
		Online:     presence.Online(),
		MayChange:  v.mayIn(operator.Write),
		Faults:     wrong,
		Recording:  findChoice(recordSettings, string(s.RecordCalls)),
		Forwarding: s.Forwarding,
		Snippets:   a.subscriberSnippets(v, s, addresses.Items),
		New:        once,
		SignIn:     a.AuthURL + "/account?project=" + url.QueryEscape(v.project.ID),
	}
	if err := a.addFactorsAndApps(v, s, &p); err != nil {
		return err
	}
	canSignIn, err := a.canSignIn(v, s, p.Factors)
	if err != nil {
		return err
	}
	p.NoWayIn = !canSignIn
	if s.Email != "" && s.PasswordHash == "" && !s.Disabled {
		p.Invitation, err = a.invitationPart(v, s)
		if err != nil {
			return err
		}
		p.Invitation.New = once
		p.Invited = p.Invitation.Pending
	}
	p.Hindrance = hindrance(s, canSignIn, p.Invitation)

	for _, l := range logins.Items {
		row := loginRow{Login: l, Device: device(l.UserAgent), Status: status{Kind: "good", Word: "Signed in"}}
		switch {
		case !l.Ended.IsZero():
			row.Status = status{Word: "Ended"}
		case !v.now.Before(l.Expires):
			row.Status = status{Word: "Cookie expired"}
		}
		p.Logins = append(p.Logins, row)
	}

	v.notice = p.noticeFor(v)
	return a.page(v, code, p.Subscriber.Title, "subscriber", p)
}

// noticeFor returns the notice after the subscriber was added or enabled, or "". The notice depends
// on how the subscriber can sign in.
func (p subscriberPage) noticeFor(v *visit) string {
	name := v.quote(p.Subscriber.Title)
	switch {
	case p.New.Added:
		return words.Textf("%s created.", name)
	case v.done("subscriberadded") && p.Invitation != nil:
		return words.Textf("%s is added without a password. “Send an invitation” below lets them choose one.", name)
	case v.done("subscriberadded"):
		return words.Textf("%s is added and can sign in with the password you chose. "+
			"Share it over a channel you trust.", name)
	case v.done("enabled") && p.NoWayIn:
		return words.Textf("%s is enabled again, but cannot sign in without a password. "+
			"An invitation lets them choose one.", name)
	}
	return ""
}

// changeSubscriber disables or enables a subscriber.
func (a *subscriberPages) changeSubscriber(v *visit, disabled bool, done string) error {
	id := v.r.PathValue("id")
	in := fabric.SubscriberInput{Disabled: &disabled}
	if _, err := a.Fabric.Subscribers.Update(v.r.Context(), v.project.ID, id, in); err != nil {
		return err
	}
	return v.backTo(id, done)
}

// disableSubscriber serves POST /dashboard/projects/{project}/subscribers/{id}/disable.
func (a *subscriberPages) disableSubscriber(v *visit) error {
	return a.changeSubscriber(v, true, "disabled")
}

// enableSubscriber serves POST /dashboard/projects/{project}/subscribers/{id}/enable.
func (a *subscriberPages) enableSubscriber(v *visit) error {
	return a.changeSubscriber(v, false, "enabled")
}

// revokeSubscriber serves POST /dashboard/projects/{project}/subscribers/{id}/revoke. It ends
// one session, or all sessions and tokens.
func (a *subscriberPages) revokeSubscriber(v *visit) (err error) {
	id, done := v.r.PathValue("id"), "signedout"
	if sid := v.form.Get("session"); sid != "" {
		done = "ended"
		err = a.Fabric.Logins.End(v.r.Context(), v.project.ID, id, sid)
	} else {
		err = a.Fabric.Subscribers.Revoke(v.r.Context(), v.project.ID, id)
	}
	if err != nil {
		return err
	}
	return v.backTo(id, done)
}

// deleteSubscriber serves POST /dashboard/projects/{project}/subscribers/{id}/delete. The form's
// field remove selects whether to delete only the account, or to erase the person.
func (a *subscriberPages) deleteSubscriber(v *visit) error {
	s, err := a.Fabric.Subscribers.Find(v.r.Context(), v.project.ID, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	name, what := v.subscriberRow(s).Title, v.form.Get("remove")
	switch {
	case what != "account" && what != "person":
		return a.subscriberPage(v, http.StatusUnprocessableEntity,
			faultAt("remove-choice", "Choose what to remove."), shownOnce{})
	case v.form.Get("confirm") != name:
		return a.subscriberPage(v, http.StatusUnprocessableEntity, faultAt("confirm", wrongName), shownOnce{})
	case what == "person":
		if _, err := a.Fabric.Subscribers.Erase(v.r.Context(), v.project.ID, s.ID); err != nil {
			return err
		}
		return v.redirect(v.base() + "/subscribers?done=erased")
	}
	if err := a.Fabric.Subscribers.Delete(v.r.Context(), v.project.ID, s.ID); err != nil {
		return err
	}
	a.rememberDeleted(v, name)
	return v.redirect(v.base() + "/subscribers?done=subscriberdeleted")
}
