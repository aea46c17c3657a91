package store

import (
	"context"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
)

// ListLogins returns a page of a subscriber's logins, and with a second query the
// grants of those.
func (s *Logins) ListLogins(ctx context.Context, projectID, subscriberID string, q page.Query) (page.Page[fabric.Login], error) {
	l := listing[fabric.Login]{
		thing: "logins", columns: `id, auth_time, amr, user_agent, address, expires, ended`, from: "login_sessions",
		key: []string{"id"}, start: startAt(q.From), desc: true,
		scan: scanLogin, id: func(l fabric.Login) string { return l.ID },
	}
	l.where.and(`project_id = $%d`, projectID)
	l.where.and(`subscriber_id = $%d`, subscriberID)
	p, err := l.page(ctx, s.read(), q)
	if err != nil || len(p.Items) == 0 {
		return p, err
	}
	return p, s.addGrants(ctx, p.Items)
}

func scanLogin(row scanner) (l fabric.Login, err error) {
	var amr string
	var began, expires, ended int64
	err = row.Scan(&l.ID, &began, &amr, &l.UserAgent, &l.Address, &expires, &ended)
	l.Began, l.Expires, l.Ended, l.AMR = moment(began), moment(expires), moment(ended), strings.Fields(amr)
	return l, found(err, "login")
}

// addGrants returns logins their grants.
func (s *Logins) addGrants(ctx context.Context, logins []fabric.Login) error {
	type grant struct {
		sid string
		fabric.Grant
	}
	scan := func(row scanner) (g grant, err error) {
		var scope string
		var created, idle, expires, revoked int64
		err = row.Scan(&g.sid, &g.ClientID, &g.ClientName, &scope, &created, &idle, &expires, &revoked)
		g.Scope, g.Created, g.Expires, g.Revoked = strings.Fields(scope), moment(created), moment(min(idle,
			expires)), moment(revoked)
		return g, err
	}
	at := make(map[string]*fabric.Login, len(logins))
	ids := make([]any, len(logins))
	for i := range logins {
		at[logins[i].ID], ids[i] = &logins[i], logins[i].ID
	}
	grants, err := gather(ctx, s.read(), "listing grants", scan,
		`SELECT g.session_id, g.client_id, c.name, g.scope, g.created, g.idle_until, g.expires, g.revoked
		FROM grants g JOIN clients c ON c.id = g.client_id WHERE g.session_id IN (`+
			params(0, len(ids))+`) ORDER BY g.id`, ids...)
	for _, g := range grants {
		at[g.sid].Grants = append(at[g.sid].Grants, g.Grant)
	}
	return err
}
