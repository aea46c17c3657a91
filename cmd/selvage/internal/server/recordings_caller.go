package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/dpop"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// recordingsCaller returns the owner whose recordings the caller may access. The caller
// authenticates with
//
//   - an API key, which gives access to its project,
//   - an access token of a service, for its project, or of a subscriber, for the subscriber,
//   - a login to the dashboard without an Authorization header, for the project in the path.
//
// API keys and tokens need the scope Voice.
func (a *App) recordingsCaller(r *http.Request) (recordings.Owner, error) {
	if projectID, key, ok := web.Basic(r); ok {
		return a.callerByKey(r, projectID, key)
	}
	if raw, ok := web.AccessToken(r); ok {
		return a.callerByToken(r, raw)
	}
	if a.pages != nil && r.Header.Get("Authorization") == "" {
		projectID := r.PathValue("AccountSid")
		operatorID, err := a.pages.Caller(r, projectID)
		return recordings.Owner{ProjectID: projectID, Maker: makerOf(revocation.Key, operatorID)}, err
	}
	return recordings.Owner{}, problem.NoCredentials().Because("neither an API key nor a token was sent")
}

// callerByKey authenticates an API key, and counts the request against its limits.
func (a *App) callerByKey(r *http.Request, projectID, key string) (recordings.Owner, error) {
	k, err := a.Fabric.APIKeys.Authenticate(r.Context(), projectID, key)
	if err != nil {
		return recordings.Owner{}, err
	}
	audit.As(r.Context(), audit.APIKey, k.ID)
	if !k.Has(fabric.Voice) {
		return recordings.Owner{}, problem.NoCredentials().Because("the API key lacks the scope Voice")
	}
	return recordings.Owner{ProjectID: k.ProjectID, Maker: makerOf(revocation.Key, k.ID)}, a.admit(r, k.ID)
}

// confirm checks that a request proves possession of the key or certificate to which its access
// token is bound. If a backend bound a SAT to a browser SDK's key, only the relay requires the
// proof.
func (a *App) confirm(r *http.Request, raw string, t fabric.Token) error {
	bySDK := t.Kind == fabric.SAT && t.GrantID == "" && len(dpop.Proofs(r)) == 0
	if _, ok := web.Bearer(r); ok && bySDK {
		return nil
	}
	return a.proofs.Confirm(r, raw, t.Binding)
}

// callerByToken authenticates an access token, and counts the request against the limits of
// its caller.
func (a *App) callerByToken(r *http.Request, raw string) (recordings.Owner, error) {
	t, err := a.IDP.Tokens.Open(r.Context(), raw)
	if err != nil {
		return recordings.Owner{}, err
	}
	if err := a.confirm(r, raw, t); err != nil {
		return recordings.Owner{}, err
	}
	if !t.Has(fabric.Voice) || t.Kind != fabric.Service && t.SubscriberID == "" {
		return recordings.Owner{}, problem.NoCredentials().Because("the token lacks the scope Voice")
	}

	if t.SubscriberID != "" {
		audit.As(r.Context(), audit.Subscriber, t.SubscriberID)
	} else {
		audit.As(r.Context(), audit.Client, t.ClientID)
	}
	maker := makerOf(revocation.Client, t.ClientID, revocation.Key, t.KeyID, revocation.Subscriber, t.SubscriberID)
	return recordings.Owner{ProjectID: t.ProjectID, SubscriberID: t.SubscriberID, Maker: maker},
		a.admit(r, t.Caller())
}

// ingestKey returns the project of an ingest key, and counts the request against the key's limits.
// recheck returns an error if the key has been revoked in the meantime.
func (a *App) ingestKey(r *http.Request, secret string) (projectID string, recheck func() error, err error) {
	k, err := a.Fabric.IngestKeys.Authenticate(r.Context(), secret)
	if err != nil {
		return "", nil, err
	}
	audit.As(r.Context(), audit.IngestKey, k.ID)
	recheck = func() error {
		_, err := a.Fabric.IngestKeys.Authenticate(r.Context(), secret)
		return err
	}
	return k.ProjectID, recheck, a.admit(r, k.ID)
}

// makerOf returns the identity of the caller that makes a link to media. The arguments are pairs of
// a kind and an ID. Revoking any of these ends the link. IDs may be empty.
func makerOf(kindsAndIDs ...string) string { return strings.Join(kindsAndIDs, "\n") }

// checkMaker returns problem.Unauthenticated if the link's maker was revoked after the link was
// made. The maker is an API key, a client, a subscriber or an operator. Ending all of an operator's
// links counts as revoking the operator.
func (a *App) checkMaker(maker string, made time.Time) error {
	parts := strings.Split(maker, "\n")
	var subjects []revocation.Subject
	for i := 0; i+1 < len(parts); i += 2 {
		subjects = append(subjects, revocation.Subject{Kind: parts[i], ID: parts[i+1]})
	}
	return a.revocations.Check(made, subjects...)
}
