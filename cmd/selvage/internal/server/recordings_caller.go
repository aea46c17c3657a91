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

// recordingsCallers authenticates the callers of the recordings API.
type recordingsCallers struct{ *App }

// caller returns the owner whose recordings the caller may access. The caller authenticates with one of
// these credentials:
//
//   - an API key, which gives access to its project
//   - an access token of a service, which gives access to the service's project
//   - an access token of a subscriber, which gives access to the subscriber's recordings
//   - a login to the dashboard, without an Authorization header, which gives access to the project in
//     the path
//
// API keys and tokens need the scope Voice.
func (c recordingsCallers) caller(r *http.Request) (recordings.Owner, error) {
	if projectID, key, ok := web.Basic(r); ok {
		return c.byKey(r, projectID, key)
	}
	if raw, ok := web.AccessToken(r); ok {
		return c.byToken(r, raw)
	}
	if c.pages != nil && r.Header.Get("Authorization") == "" {
		projectID := r.PathValue("AccountSid")
		operatorID, err := c.pages.Caller(r, projectID)
		if err != nil {
			return recordings.Owner{}, err
		}
		return recordings.Owner{
			ProjectID:  projectID,
			Maker:      makerOf(revocation.Key, operatorID),
			OperatorID: operatorID,
		}, nil
	}
	return recordings.Owner{}, problem.NoCredentials().Telling("neither an API key nor a token was sent")
}

// byKey authenticates an API key, and counts the request against its limits.
func (c recordingsCallers) byKey(r *http.Request, projectID, key string) (recordings.Owner, error) {
	k, err := c.Fabric.APIKeys.Authenticate(r.Context(), projectID, key)
	if err != nil {
		return recordings.Owner{}, err
	}
	audit.As(r.Context(), audit.APIKey, k.ID)
	if !k.Has(fabric.Voice) {
		return recordings.Owner{}, problem.NoCredentials().Telling("the API key lacks the scope Voice")
	}
	return recordings.Owner{ProjectID: k.ProjectID, Maker: makerOf(revocation.Key, k.ID)}, c.admit(r, k.ID)
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

// byToken authenticates an access token, and counts the request against the limits of
// its caller.
func (c recordingsCallers) byToken(r *http.Request, raw string) (recordings.Owner, error) {
	t, err := c.IDP.Tokens.Open(r.Context(), raw)
	if err != nil {
		return recordings.Owner{}, err
	}
	if err := c.confirm(r, raw, t); err != nil {
		return recordings.Owner{}, err
	}
	if !t.Has(fabric.Voice) || t.Kind != fabric.Service && t.SubscriberID == "" {
		return recordings.Owner{}, problem.NoCredentials().Telling("the token lacks the scope Voice")
	}

	if t.SubscriberID != "" {
		audit.As(r.Context(), audit.Subscriber, t.SubscriberID)
	} else {
		audit.As(r.Context(), audit.Client, t.ClientID)
	}
	maker := makerOf(revocation.Client, t.ClientID, revocation.Key, t.KeyID, revocation.Subscriber, t.SubscriberID)
	return recordings.Owner{ProjectID: t.ProjectID, SubscriberID: t.SubscriberID, Maker: maker},
		c.admit(r, t.Caller())
}

// ingestKey returns the project of an ingest key, and counts the request against the key's limits.
// recheck returns an error if the key has been revoked in the meantime.
func (c recordingsCallers) ingestKey(
	r *http.Request, secret string,
) (projectID string, recheck func() error, err error) {
	k, err := c.Fabric.IngestKeys.Authenticate(r.Context(), secret)
	if err != nil {
		return "", nil, err
	}
	audit.As(r.Context(), audit.IngestKey, k.ID)
	recheck = func() error {
		_, err := c.Fabric.IngestKeys.Authenticate(r.Context(), secret)
		return err
	}
	return k.ProjectID, recheck, c.admit(r, k.ID)
}

// makerOf returns the identity of the caller that makes a link to media. The arguments are pairs of
// a kind and an ID, which may be empty. The link stops working when any of these is revoked.
func makerOf(kindsAndIDs ...string) string { return strings.Join(kindsAndIDs, "\n") }

// checkMaker returns problem.Unauthenticated if the link's maker was revoked after the link was
// made. The maker is an API key, a client, a subscriber or an operator. Ending all of an operator's
// links counts as revoking the operator.
func (c recordingsCallers) checkMaker(maker string, made time.Time) error {
	parts := strings.Split(maker, "\n")
	var subjects []revocation.Subject
	for i := 0; i+1 < len(parts); i += 2 {
		subjects = append(subjects, revocation.Subject{Kind: parts[i], ID: parts[i+1]})
	}
	return c.revocations.Check(made, subjects...)
}
