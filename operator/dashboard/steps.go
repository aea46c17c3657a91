package dashboard

import (
	"slices"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// A step is one of the first tasks in a new project.
type step struct {
	Title   string
	URL     string // the page for the task
	Command string // the command for the task
	Hint    string // what is still missing, if the task has been begun
	Done    bool
}

// steps returns the first tasks in a project, and marks those that have been done.
func (a *projectPages) steps(v *visit) ([]step, error) {
	ctx, id, q := v.r.Context(), v.project.ID, page.Query{Size: 1}
	first, err := a.subscriberStep(v)
	if err != nil {
		return nil, err
	}
	keys, err := a.Fabric.APIKeys.List(ctx, id, q)
	if err != nil {
		return nil, err
	}
	clients, err := a.Clients.Clients.List(ctx, id, q)
	if err != nil {
		return nil, err
	}

	all := []step{
		first,
		{
			Title: "Register your app as an OAuth client",
			URL:   v.base() + "/clients/new",
			Command: "selvage client create --project " + id +
				" --type spa --redirect-uri http://localhost:3000/callback",
			Done: len(clients.Items) > 0,
		},
		{
			Title:   "Create an API key for your backend",
			URL:     v.base() + "/keys/new",
			Command: "selvage key create --project " + id + " --scope Voice",
			Done:    len(keys.Items) > 0,
		},
	}

	if a.Recordings != nil {
		some, err := a.Recordings.List(ctx, recordings.Filter{Owner: recordings.Owner{ProjectID: id}}, q)
		if err != nil {
			return nil, err
		}
		all = append(all, step{
			Title:   "Store a recording",
			URL:     v.base() + "/recordings/upload",
			Command: "selvage recording import --project " + id + " call.wav",
			Done:    len(some.Items) > 0,
		})
	}
	return all, nil
}

// fewSubscribers is the maximum number of subscribers of a project that counts as new. In a new
// project, the first step is done once a subscriber can sign in. In a larger project, perhaps
// nobody needs to sign in, because a backend creates all tokens.
const fewSubscribers = 10

// subscriberStep returns the task to add a subscriber who can sign in.
func (a *projectPages) subscriberStep(v *visit) (s step, err error) {
	s = step{
		Title:   "Add a subscriber",
		URL:     v.base() + "/subscribers/new",
		Command: "selvage subscriber create --project " + v.project.ID + " --email ada@example.com",
	}
	found, err := a.Fabric.Subscribers.List(v.r.Context(), v.project.ID, page.Query{Size: fewSubscribers + 1})
	if err != nil || len(found.Items) == 0 {
		return s, err
	}
	if len(found.Items) > fewSubscribers {
		s.Done = true
		return s, nil
	}

	enabled := slices.DeleteFunc(found.Items, func(s fabric.Subscriber) bool { return s.Disabled })
	if len(enabled) == 0 {
		return s, nil
	}
	s.Done, err = a.canAnySignIn(v, enabled)
	if err != nil || s.Done {
		return s, err
	}

	s.Hint = "No way to sign in yet: send an invitation."
	s.URL = v.base() + "/subscribers"
	if one := enabled[0]; len(enabled) == 1 {
		s.URL = v.subscriberRow(one).URL
		if one.Email != "" {
			s.URL += "#invitation"
			s.Command = "selvage subscriber invite --project " + v.project.ID + " --email " + quoteShell(one.Email)
		}
	}
	return s, nil
}

// canAnySignIn reports whether one of the subscribers has a password or a passkey, or the project
// offers another provider to sign in with.
func (a *projectPages) canAnySignIn(v *visit, all []fabric.Subscriber) (bool, error) {
	for _, s := range all {
		if s.PasswordHash != "" {
			return true, nil
		}
	}
	offered, err := a.Clients.Upstreams.Offered(v.r.Context(), v.project.ID)
	if err != nil || len(offered) > 0 {
		return len(offered) > 0, err
	}

	for _, s := range all {
		factors, err := a.Fabric.Subscribers.ListFactors(v.r.Context(), v.project.ID, s.ID,
			page.Query{Size: page.DefaultSize})
		if err != nil {
			return false, err
		}
		for _, f := range factors.Items {
			if f.Type == factor.TypePasskey {
				return true, nil
			}
		}
	}
	return false, nil
}
