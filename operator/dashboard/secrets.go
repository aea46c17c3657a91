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

// knownSecrets holds the valid secrets that an operator has seen. The secrets belong to projects.
// If the operator is deleted, they remain valid unless they are revoked.
type knownSecrets struct {
	Secrets []secretRow
	Tokens  int // number of tokens created manually in the last 30 days, some of which may still be valid
}

// Any reports whether there are any secrets.
func (m knownSecrets) Any() bool { return len(m.Secrets) > 0 || m.Tokens > 0 }

// A secretRow is one known secret.
type secretRow struct {
	What    string
	Title   string
	URL     string
	Through string // the API key or client that created it; "" if the operator did
	At      time.Time
	Value   string       // identifies the secret in the form that revokes it; "" if it must be rotated instead
	end     func() error // revokes the secret; set if Value is not ""
}

// allTokens is the form value for all tokens created manually.
const allTokens = "tokens"

// secretsOf returns the secrets that an operator has seen, according to the audit trail.
func (a *operatorPages) secretsOf(v *visit, o operator.Operator) (m knownSecrets, err error) {
	events, err := a.secretsShown(v, o)
	if err != nil {
		return m, err
	}

	for _, e := range secretChain(o.ID, events) {
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
	m.Tokens, err = a.tokensIssued(v, o)
	return m, err
}

// tokensIssued counts the tokens that an operator created manually. It counts only events on the
// first page of the audit trail that contains such events, and ignores events whose tokens must
// have expired.
func (a *operatorPages) tokensIssued(v *visit, o operator.Operator) (int, error) {
	issued := audit.Filter{
		Actor:     o.ID,
		ActorKind: audit.Operator,
		Action:    "token.issued",
		Outcome:   audit.Done,
		Since:     v.now.Add(-fabric.MaxLifetime),
	}
	query := page.Query{Size: page.MaxSize}
	for { // a page may be empty even if more pages follow
		found, err := a.trail.audit(v, issued, query)
		if err != nil {
			return 0, err
		}
		if len(found.Items) > 0 || found.Next == "" {
			return len(found.Items), nil
		}
		query.From = found.Next
	}
}

// secretsShown returns the events in which a secret was shown to an operator, or to a key or client
// whose secret the operator has seen. It reads all events, so that newer secrets cannot hide an
// older one. If a secret was shown to the same actor several times, it returns only the first of
// these events in the list.
func (a *operatorPages) secretsShown(v *visit, o operator.Operator) (events []audit.Event, err error) {
	if a.SecretsShown == nil {
		return nil, nil
	}
	found, err := a.SecretsShown(v.r.Context(), o.ID)
	if err != nil {
		return nil, err
	}
	type showing struct{ actorID, secretID string }
	known := make(map[showing]bool)
	for _, e := range found {
		one := showing{actorID: e.Actor.ID, secretID: e.Target.ID}
		if !known[one] {
			known[one] = true
			events = append(events, e)
		}
	}
	return events, nil
}

// A secretEvent is an event in which a secret was shown to an operator, either directly or through
// another secret.
type secretEvent struct {
	audit.Event
	through string // name of the other secret, if any
}

// secretChain returns one event for each secret that an operator has seen. The operator has seen a
// secret directly, or through a key or client whose secret the operator has seen, and so on.
// Secrets that are no longer valid are included. secretChain visits each event once, however long
// the chain is.
func secretChain(operatorID string, events []audit.Event) (chain []secretEvent) {
	byActor := make(map[string][]audit.Event)
	for _, e := range events {
		byActor[e.Actor.ID] = append(byActor[e.Actor.ID], e)
	}

	nameOf := map[string]string{operatorID: ""} // name of each actor, by id
	actors := []string{operatorID}              // actors whose events have not been visited yet
	for len(actors) > 0 {
		actor := actors[0]
		actors = actors[1:]
		for _, e := range byActor[actor] {
			secretID := e.Target.ID
			if _, isKnown := nameOf[secretID]; isKnown {
				continue
			}
			nameOf[secretID] = cmp.Or(e.Detail["name"], secretID)
			actors = append(actors, secretID)
			chain = append(chain, secretEvent{Event: e, through: nameOf[actor]})
		}
	}
	return chain
}

// secretRow returns the row of a secret, or problem.NotFound if it is no longer valid.
func (a *operatorPages) secretRow(v *visit, e audit.Event) (secretRow, error) {
	row := secretRow{Title: e.Detail["name"], At: e.At, Value: e.Target.Kind + " " + e.Target.ID}
	switch e.Target.Kind {
	case "api_key":
		err := a.addAPIKey(v, e, &row)
		return row, err
	case "embed_key":
		err := a.addEmbedKey(v, e, &row)
		return row, err
	}

	c, err := a.Clients.Clients.Find(v.r.Context(), e.Target.ID)
	if err != nil {
		return secretRow{}, err
	}
	if c.SecretHash == "" {
		return secretRow{}, problem.NoSuch("client")
	}
	row.What = "Secret of the OAuth client"
	row.Title = cmp.Or(c.Name, c.ID)
	row.Value = ""
	row.URL = Prefix + "/projects/" + c.ProjectID + "/clients/" + c.ID
	return row, nil
}

// addAPIKey completes the row of an API key.
func (a *operatorPages) addAPIKey(v *visit, e audit.Event, row *secretRow) error {
	ctx := v.r.Context()
	k, err := a.Fabric.APIKeys.Find(ctx, e.ProjectID, e.Target.ID)
	if err != nil {
		return err
	}
	if !k.Revoked.IsZero() || !k.Expires.IsZero() && !v.now.Before(k.Expires) {
		return problem.NoSuch("API key")
	}
	row.What = "API key"
	row.Title = cmp.Or(k.Name, k.Prefix+"…")
	row.URL = Prefix + "/projects/" + e.ProjectID + "/keys/" + k.ID
	row.end = func() error { return a.Fabric.APIKeys.Revoke(ctx, k.ProjectID, k.ID) }
	return nil
}

// addEmbedKey completes the row of an embed key.
func (a *operatorPages) addEmbedKey(v *visit, e audit.Event, row *secretRow) error {
	ctx := v.r.Context()
	found, err := a.Fabric.EmbedKeys.List(ctx, e.ProjectID, page.Query{Size: 1, From: e.Target.ID})
	if err != nil {
		return err
	}
	if len(found.Items) == 0 || found.Items[0].ID != e.Target.ID || !found.Items[0].Revoked.IsZero() {
		return problem.NoSuch("embed key")
	}
	k := found.Items[0]
	row.What = "Embed key"
	row.Title = cmp.Or(k.Name, k.Prefix+"…")
	row.URL = Prefix + "/projects/" + e.ProjectID + "/tokens"
	row.end = func() error { return a.Fabric.EmbedKeys.Revoke(ctx, k) }
	return nil
}

// endSecrets revokes the secrets that a form selects, if the operator has seen them.
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
	if err != nil {
		return err
	}
	if err := a.endSecrets(v, o); err != nil {
		return err
	}
	return v.redirect(Prefix + "/operators/" + o.ID + "?done=madeended")
}
