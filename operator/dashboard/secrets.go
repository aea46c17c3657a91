package dashboard

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// made is what an operator was shown the secret of, and is good yet. It is the project's,
// and stays when the operator goes, unless somebody ends it with it.
type made struct {
	Secrets []secretRow
	Tokens  int // made by hand; some may be good yet
}

// Any reports whether there is something.
func (m made) Any() bool { return len(m.Secrets) > 0 || m.Tokens > 0 }

// A secretRow is one such thing.
type secretRow struct {
	What, Title, URL string
	Through          string // the API key or client with which it was made; "" for the operator itself
	At               time.Time
	Value            string // goes back with the form that ends it; "" for what has to get another secret instead
	end              func() error
}

// allTokens is the value of the form that stands for all of them.
const allTokens = "tokens"

// secretsOf reads in the audit trail what an operator has made, and given other secrets.
func (a *operatorPages) secretsOf(v *visit, o operator.Operator) (m made, err error) {
	all, err := a.secretsShown(v, o)
	if err != nil {
		return m, err
	}
	for _, e := range secretChain(o.ID, all) {
		row, err := a.secretRow(v, e.Event)
		if errors.Is(err, problem.NotFound) {
			continue
		}
		if err != nil {
			return m, err
		}
		row.Through = e.through
		m.Secrets = append(m.Secrets, row)
	}
	made := audit.Filter{Actor: o.ID, ActorKind: audit.Operator, Action: "token.issued", Outcome: audit.Done,
		Since: v.now.Add(-fabric.MaxLifetime)}
	for q := (page.Query{Size: page.MaxSize}); m.Tokens == 0; { // a page may be empty, and another not
		found, err := a.trail.audit(v, made, q)
		if err != nil {
			return m, err
		}
		m.Tokens = len(found.Items)
		if q.From = found.Next; q.From == "" {
			break
		}
	}
	return m, nil
}

// secretsShown reads in the audit trail what secrets an operator was shown, and those that were
// shown to what it was shown the secret of. All of them: who wants to hide one makes many behind
// it. Whoever was shown that of the same thing again counts once.
func (a *operatorPages) secretsShown(v *visit, o operator.Operator) (all []audit.Event, err error) {
	if a.SecretsShown == nil {
		return nil, nil
	}
	found, err := a.SecretsShown(v.r.Context(), o.ID)
	shown := make(map[[2]string]bool)
	for _, e := range found {
		if of := [2]string{e.Actor.ID, e.Target.ID}; !shown[of] {
			shown[of], all = true, append(all, e)
		}
	}
	return all, err
}

// A secretEvent tells of a secret that somebody was shown, itself or through another of its
// secrets.
type secretEvent struct {
	audit.Event
	through string
}

// secretChain returns one event for each thing whose secret an operator was shown: by itself, or by
// a key or client whose secret it was shown, and so on, whether those are good any more or not.
// It looks at each event once, however long the chain that somebody has made.
func secretChain(operatorID string, all []audit.Event) (made []secretEvent) {
	by := make(map[string][]audit.Event)
	for _, e := range all {
		by[e.Actor.ID] = append(by[e.Actor.ID], e)
	}
	names := map[string]string{operatorID: ""} // of who makes, by id
	for left := []string{operatorID}; len(left) > 0; left = left[1:] {
		for _, e := range by[left[0]] {
			if _, known := names[e.Target.ID]; !known {
				names[e.Target.ID], left = cmp.Or(e.Detail["name"], e.Target.ID), append(left, e.Target.ID)
				made = append(made, secretEvent{e, names[left[0]]})
			}
		}
	}
	return made
}

// secretRow returns what an event tells of, if that is there yet and good; else it is
// problem.NotFound.
func (a *operatorPages) secretRow(v *visit, e audit.Event) (secretRow, error) {
	ctx, base := v.r.Context(), Prefix+"/projects/"+e.ProjectID
	row := secretRow{What: "API key", Title: e.Detail["name"], At: e.At, Value: e.Target.Kind + " " + e.Target.ID}
	switch e.Target.Kind {
	case "api_key":
		k, err := a.Fabric.APIKeys.Find(ctx, e.ProjectID, e.Target.ID)
		if err == nil && (!k.Revoked.IsZero() || !k.Expires.IsZero() && !v.now.Before(k.Expires)) {
			err = problem.NoSuch("API key")
		}
		if err != nil {
			return row, err
		}
		row.URL, row.end = base+"/keys/"+k.ID, func() error { return a.Fabric.APIKeys.Revoke(ctx, k.ProjectID, k.ID) }
		row.Title = cmp.Or(k.Name, k.Prefix+"…")
	case "embed_key":
		found, err := a.Fabric.EmbedKeys.List(ctx, e.ProjectID, page.Query{Size: 1, From: e.Target.ID})
		if err == nil && (len(found.Items) == 0 || found.Items[0].ID != e.Target.ID ||
			!found.Items[0].Revoked.IsZero()) {
			err = problem.NoSuch("embed key")
		}
		if err != nil {
			return row, err
		}
		k := found.Items[0]
		row.What, row.Title, row.URL = "Embed key", cmp.Or(k.Name, k.Prefix+"…"), base+"/tokens"
		row.end = func() error { return a.Fabric.EmbedKeys.Revoke(ctx, k) }
	default:
		c, err := a.Clients.Clients.Find(ctx, e.Target.ID)
		if err == nil && c.SecretHash == "" {
			err = problem.NoSuch("client")
		}
		if err != nil {
			return row, err
		}
		row.What, row.Title, row.URL, row.Value = "Secret of the OAuth client", cmp.Or(c.Name,
			c.ID), Prefix+"/projects/"+c.ProjectID+"/clients/"+c.ID, ""
	}
	return row, nil
}

// endSecrets ends what of it a form names, and nothing that the operator has not made.
func (a *operatorPages) endSecrets(v *visit, o operator.Operator) error {
	m, err := a.secretsOf(v, o)
	if err != nil {
		return err
	}
	for _, row := range m.Secrets {
		if row.Value != "" && slices.Contains(v.form["end"], row.Value) {
			if err := row.end(); err != nil && !errors.Is(err, problem.NotFound) {
				return err
			}
		}
	}
	if !slices.Contains(v.form["end"], allTokens) {
		return nil
	}
	return a.Fabric.Tokens.RevokeByHand(v.r.Context(), o.ID)
}

// revokeSecrets serves POST /dashboard/operators/{id}/revoke.
func (a *operatorPages) revokeSecrets(v *visit) error {
	o, err := a.Operators.Find(v.r.Context(), v.r.PathValue("id"))
	if err == nil {
		err = a.endSecrets(v, o)
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/operators/" + o.ID + "?done=madeended")
}
