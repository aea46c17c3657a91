// Package transfer moves projects between installations. It also imports people and apps from other
// identity providers.
//
// An export is a file of JSON lines. The first line is a [Header]. The last line contains the
// number of lines in between. Each of these lines is a project or something that belongs to a
// project; see [Kinds]. Everything keeps its ID. The file contains secrets only as hashes. [Export]
// writes the file and [Importer] reads it, whichever databases the two installations use.
//
// [Keycloak] and [Auth0] read the exports of these systems into the same records. They report
// everything that selvage cannot store.
package transfer

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/idp"
)

// Format and Version identify the files. A reader rejects newer versions.
const (
	Format  = "selvage-export"
	Version = 1
)

// A Header is the first line of a file.
type Header struct {
	Kind    string    `json:"kind"` // Format
	Version int       `json:"version"`
	Created time.Time `json:"created_at"`
	By      string    `json:"selvage"` // the version of selvage that wrote the file
}

// An End is the last line of a file.
type End struct {
	Kind    string `json:"kind"` // kindEnd
	Records int    `json:"records"`
}

// These are the kinds of records, in the order in which a file lists them for each project.
const (
	kindProject    = "project"
	kindKey        = "key"
	kindClient     = "client"
	kindSubscriber = "subscriber"
	kindResource   = "resource"
	kindNumber     = "phone_number"
	kindWebhook    = "webhook"
	kindUpstream   = "upstream"
	kindIngestKey  = "ingest_key"
	kindRule       = "retention_rule"
	kindEnd        = "end"
)

// Kinds returns the kinds of records, in the order of a file.
func Kinds() []string {
	return []string{
		kindProject,
		kindKey,
		kindClient,
		kindSubscriber,
		kindResource,
		kindNumber,
		kindWebhook,
		kindUpstream,
		kindIngestKey,
		kindRule,
	}
}

// These are the record types, one for each kind. The first member of each record is its kind, so
// that people can search for the kind at the beginning of lines.
type (
	// A Project is the record of a [fabric.Project].
	Project struct {
		Kind string `json:"kind"`
		fabric.Project
	}
	// A Key is the record of a [fabric.APIKey].
	Key struct {
		Kind      string    `json:"kind"`
		ID        string    `json:"id"`
		ProjectID string    `json:"project_id"`
		Name      string    `json:"name,omitempty"`
		Prefix    string    `json:"prefix"`
		Hash      string    `json:"hash"`
		Scopes    []string  `json:"scopes"`
		Expires   time.Time `json:"expires_at,omitzero"`
		Created   time.Time `json:"created_at,omitzero"`
	}
	// A Client is the record of an [idp.Client].
	Client struct {
		Kind         string          `json:"kind"`
		ID           string          `json:"client_id"`
		ProjectID    string          `json:"project_id"`
		Name         string          `json:"name,omitempty"`
		Type         idp.ClientType  `json:"type"`
		Profile      idp.Profile     `json:"profile,omitempty"`
		AuthMethod   idp.AuthMethod  `json:"auth_method,omitempty"`
		SecretHash   string          `json:"secret_hash,omitempty"`
		FirstParty   bool            `json:"first_party,omitempty"`
		PKCEOptional bool            `json:"pkce_optional,omitempty"`
		RedirectURIs []string        `json:"redirect_uris,omitempty"`
		LogoutURIs   []string        `json:"post_logout_redirect_uris,omitempty"`
		Grants       []string        `json:"grants,omitempty"`
		Scopes       []string        `json:"scopes,omitempty"`
		AccessToken  idp.TokenFormat `json:"access_token,omitempty"`
		IDTokenAlg   string          `json:"id_token_alg,omitempty"`
		idp.Metadata
		Created time.Time `json:"created_at,omitzero"`
	}
	// A Subscriber is the record of a [fabric.Subscriber] with the name of its address.
	Subscriber struct {
		Kind          string `json:"kind"`
		ID            string `json:"id,omitempty"`
		ProjectID     string `json:"project_id"`
		Email         string `json:"email,omitempty"`
		EmailVerified bool   `json:"email_verified,omitempty"`
		Reference     string `json:"reference,omitempty"`
		PasswordHash  string `json:"password_hash,omitempty"`
		fabric.Person
		Claims      *fabric.StandardClaims `json:"claims,omitempty"`
		Disabled    bool                   `json:"disabled,omitempty"`
		RecordCalls fabric.RecordCalls     `json:"record_calls,omitempty"`
		fabric.Forwarding
		Address string    `json:"address,omitempty"`
		Created time.Time `json:"created_at,omitzero"`
	}
	// A Resource is the record of a [fabric.Resource] with the name of its address.
	Resource struct {
		Kind      string       `json:"kind"`
		ID        string       `json:"id"`
		ProjectID string       `json:"project_id"`
		Type      string       `json:"type"`
		Fields    kinds.Values `json:"fields"`
		Secrets   bool         `json:"secrets_left_out,omitempty"` // whether secrets are missing from the file
		Address   string       `json:"address,omitempty"`
		Created   time.Time    `json:"created_at,omitzero"`
	}
	// A Number is the record of a [fabric.PhoneNumber].
	Number struct {
		Kind       string    `json:"kind"`
		ID         string    `json:"id"`
		ProjectID  string    `json:"project_id"`
		Number     string    `json:"number"`
		ResourceID string    `json:"resource_id,omitempty"` // resource that takes calls to the number
		Created    time.Time `json:"created_at,omitzero"`
	}
	// A Webhook is the record of a [fabric.Webhook].
	Webhook struct {
		Kind      string             `json:"kind"`
		ID        string             `json:"id"`
		ProjectID string             `json:"project_id"`
		URL       string             `json:"url"`
		Name      string             `json:"name,omitempty"`
		Events    []fabric.EventName `json:"events"`
		Enabled   bool               `json:"enabled"`
		Created   time.Time          `json:"created_at,omitzero"`
	}
	// An Upstream is the record of an [idp.Upstream].
	Upstream struct {
		Kind      string `json:"kind"`
		ID        string `json:"id"`
		ProjectID string `json:"project_id"`
		Name      string `json:"name"`
		Issuer    string `json:"issuer"`
		ClientID  string `json:"client_id"`
		Secret    bool   `json:"secret_left_out,omitempty"` // whether the secret is missing from the file
		Enabled   bool   `json:"enabled"`
		idp.UpstreamSettings
		Created time.Time `json:"created_at,omitzero"`
	}
	// An IngestKey is the record of a [fabric.IngestKey].
	IngestKey struct {
		Kind      string    `json:"kind"`
		ID        string    `json:"id"`
		ProjectID string    `json:"project_id"`
		Name      string    `json:"name,omitempty"`
		Prefix    string    `json:"prefix"`
		Hash      string    `json:"hash"`
		Expires   time.Time `json:"expires_at,omitzero"`
		Created   time.Time `json:"created_at,omitzero"`
	}
	// A Rule is the record of a [recordings.Rule].
	Rule struct {
		Kind         string    `json:"kind"`
		ID           string    `json:"id"`
		ProjectID    string    `json:"project_id"`
		Tag          string    `json:"tag,omitempty"`
		SubscriberID string    `json:"subscriber_id,omitempty"`
		Days         int       `json:"days"`
		Created      time.Time `json:"created_at,omitzero"`
	}
)

// unmarshal decodes a record, and returns an error for unknown members.
func unmarshal(line []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
