package server

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/docsite"
	"github.com/selvage/selvage/fabric/rest"
	"github.com/selvage/selvage/idp/oidc"
	"github.com/selvage/selvage/openapi"
	"github.com/selvage/selvage/operator/dashboard"
	"github.com/selvage/selvage/recordings/laml"
	relayrest "github.com/selvage/selvage/recordings/rest"
)

// A mounter mounts the services of an App on a mux.
type mounter struct {
	*App
	mux *http.ServeMux
	log *slog.Logger
}

// mount mounts h at each of paths.
func (m mounter) mount(h http.Handler, paths ...string) {
	for _, path := range paths {
		m.mux.Handle(path, h)
	}
}

// docs mounts the pages of the documentation.
func (m mounter) docs() {
	docs := docsite.New(docsite.Config{
		Config: openapi.Config{
			Kinds:     m.Fabric.Resources.Kinds(),
			PublicURL: m.Where.Public,
			AuthURL:   m.Where.Auth,
		},
		Log: m.log,
	})
	m.mount(orNotFound(docs.Handler()), "/docs", docsite.Prefix)
}

// idp mounts the OpenID provider.
func (m mounter) idp() error {
	api, err := oidc.New(oidc.Config{
		Provider:     m.IDP,
		Proofs:       m.proofs,
		Sessions:     m.sessions,
		Browsers:     m.Store,
		AuthURL:      m.Where.Auth,
		MTLSURL:      m.Where.MTLS,
		Certificates: m.Config.HasCertificates(),
		HTTP:         m.egress.Client(),
		Mailbox:      m.showsMailbox(),
		Log:          m.log,
	})
	if err != nil {
		return err
	}
	m.mount(orNotFound(api.Handler()), pathsOf(api.Routes())...)
	return nil
}

// fabric mounts the API of projects, resources and subscribers.
func (m mounter) fabric() {
	api := rest.New(rest.Config{
		Fabric:  m.Fabric,
		Clients: m.IDP,
		Rooms:   m.RoomSessions,
		Move:    m.mover(),
		Chat:    m.Chat,
		Access:  m.IDP.Tokens.Open,
		Confirm: m.confirm,
		Admit:   m.admit,
		Log:     m.log,
	})
	m.mount(soon(api.Handler),
		"/api/fabric", "/api/fabric/", "/api/project", "/api/project/", "/subscriber/")
}

// dashboard mounts the dashboard, and keeps it in m.pages.
func (m mounter) dashboard() error {
	pages, err := dashboard.New(dashboard.Config{
		Operators:     m.Operators,
		Fabric:        m.Fabric,
		Clients:       m.IDP,
		Recordings:    m.Recordings,
		Calls:         m.CallRecords,
		Rooms:         m.RoomSessions,
		NoCalls:       m.Calls == nil,
		Move:          m.mover(),
		Sessions:      m.sessions,
		PublicURL:     m.Where.Public,
		AuthURL:       m.Where.Auth,
		Factors:       m.operatorFactors,
		RequireFactor: m.Config.Operators.RequireFactor.Roles(m.Local()),
		Audit:         m.Store.ListAudit,
		SecretsShown:  m.Store.SecretsShown,
		Health:        m.healthOf(m.log),
		Counts:        m.Store.ListCounts,
		Installation:  installationPages{m.App}.all(),
		Log:           m.log,
	})
	if err != nil {
		return err
	}

	m.pages = pages
	m.mount(orNotFound(soon(pages.Handler)), dashboard.Prefix, dashboard.Prefix+"/")
	return nil
}

// recordings mounts the compatible and the native API of recordings.
func (m mounter) recordings() error {
	offload, err := newOffload(m.Config)
	if err != nil {
		return err
	}

	callers := recordingsCallers{m.App}
	compatible := laml.New(laml.Config{
		Recordings:  m.Recordings,
		Calls:       m.CallRecords,
		Credentials: callers.caller,
		IngestKey:   callers.ingestKey,
		Miss:        m.countMediaMiss,
		PublicURL:   m.Where.Public,
		Encoders:    m.Config.Recordings.MP3Parallel,
		Offload:     offload,
		Redirect:    m.newRedirect(),
		Log:         m.log,
	})
	m.mount(soon(compatible.Handler), "/api/laml/", "/2010-04-01/", laml.IngestPrefix)

	native := relayrest.New(relayrest.Config{
		Recordings:  m.Recordings,
		Credentials: callers.caller,
		MediaURLs:   compatible.MediaURLs,
		Log:         m.log,
	})
	m.mount(soon(native.Handler), relayrest.Prefix, relayrest.Prefix+"/")
	return nil
}

// pathsOf returns the paths of patterns, without duplicates. The mux mounted at these paths also
// handles other methods.
func pathsOf(patterns []string) (all []string) {
	for _, pattern := range patterns {
		_, path, hasMethod := strings.Cut(pattern, " ")
		if !hasMethod {
			path = pattern
		}
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}
