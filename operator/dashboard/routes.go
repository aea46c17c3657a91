package dashboard

import (
	"slices"

	"github.com/selvage/selvage/operator"
)

// These are access levels in addition to the actions that roles allow.
const (
	anyone   operator.Action = ""          // no login is required
	signedIn operator.Action = "signed in" // any signed-in operator, for pages about that operator
	halfway  operator.Action = "halfway"   // the password was right; a required second factor is still missing
)

// A route is one page or action of the dashboard.
type route struct {
	pattern string
	may     operator.Action // the action that the role must allow, in {project} or in the installation
	serve   func(*visit) error
	nav     string // title in the navigation; "" means that the navigation does not list the page
	group   navGroup
	once    bool  // the form creates or sends something; see site.serve
	enters  bool  // the form begins or replaces the session; see site.serve
	ends    bool  // the form deletes or ends something; see site.serve
	fresh   bool  // the operator must have confirmed their identity recently
	large   bool  // the form may contain a document
	upload  int64 // maximum size of the form's files, in bytes; 0 if the form has no file
}

// A navGroup is a heading in the navigation.
type navGroup string

// These are the headings of the navigation. Pages without a heading come first.
const (
	noGroup      navGroup = ""
	people       navGroup = "People"
	calling      navGroup = "Communication"
	recorded     navGroup = "Archive"
	access       navGroup = "Access"
	look         navGroup = "Look"
	project      navGroup = "Project"
	installation navGroup = "Installation"
)

// navGroups lists the headings of the navigation, in order.
var navGroups = []navGroup{noGroup, people, calling, recorded, access, look, project, installation}

// routes returns the routes of all groups of pages. Within a heading, the navigation lists pages in
// this order.
func routes(c Config, s *site) []route {
	t := newTrail(c, s)
	factors, clients := &factorPages{s}, &clientPages{s, c.Clients}
	tokens := &tokenPages{s, c.Clients}
	subscribers := &subscriberPages{site: s, Clients: c.Clients, Mailing: c.Installation.Mailing}
	ofCalls := &callPages{site: s, trail: t, Calls: c.Calls, Recordings: c.Recordings, Move: c.Move}

	return slices.Concat(
		(&projectPages{
			site:         s,
			trail:        t,
			Clients:      c.Clients,
			Recordings:   c.Recordings,
			Health:       c.Health,
			Counts:       c.Counts,
			Installation: c.Installation,
		}).routes(),
		(&searchPages{s, c}).routes(),
		(&resourcePages{s, tokens}).routes(),
		subscribers.routes(),
		ofCalls.routes(),
		(&roomPages{ofCalls, c.Rooms}).routes(),
		(&recordingPages{site: s, trail: t, Recordings: c.Recordings, Calls: c.Calls}).routes(),
		(&recordingPages{site: s, trail: t, Recordings: c.Recordings, Calls: c.Calls}).keepingRoutes(),
		tokens.routes(),
		(&keyPages{s}).routes(),
		(&ingestKeyPages{s}).routes(),
		clients.routes(),
		(&registrationTokenPages{s}).routes(),
		(&upstreamPages{s, c.Clients.Upstreams}).routes(),
		(&brandPages{site: s, clients: clients, Clients: c.Clients}).routes(),
		(&rulePages{s}).routes(),
		(&webhookPages{s}).routes(),
		(&operatorPages{site: s, trail: t, Clients: c.Clients, SecretsShown: c.SecretsShown}).routes(),
		(&mailPages{s, c.Installation}).routes(),
		(&kindPages{s}).routes(),
		(&backupPages{s, c.Installation.Backups}).routes(),
		(&settingsPages{s, c.Installation}).routes(),
		(&auditPages{site: s, trail: t, subscribers: subscribers, Clients: c.Clients}).routes(),
		(&accountPages{s, factors}).routes(),
		(&loginPages{s, factors}).routes(),
		factors.routes(),
	)
}

func (a *projectPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard", may: signedIn, serve: a.front},
		{pattern: "GET /dashboard/projects/{project}", may: operator.Read, serve: a.home, nav: "Home"},
		{pattern: "GET /dashboard/projects/{project}/settings", may: operator.Read, serve: a.showProject,
			nav: "Project settings", group: project},
		{pattern: "POST /dashboard/projects/{project}/settings", may: operator.Write, serve: a.renameProject},
		{pattern: "POST /dashboard/projects/{project}/delete", may: operator.DeleteProject,
			serve: a.deleteProject, fresh: true, ends: true},
		{pattern: "GET /dashboard/projects", may: signedIn,
			serve: a.listProjects, nav: "Projects", group: installation},
		{pattern: "POST /dashboard/projects", may: operator.MakeProject, serve: a.createProject, once: true},
	}
}

func (a *searchPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/search", may: signedIn, serve: a.search},
		{pattern: "GET /dashboard/projects/{project}/search", may: operator.Read, serve: a.search},
	}
}

func (a *resourcePages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/resources", may: operator.Read,
			serve: a.listResources, nav: "Resources", group: calling},
		{pattern: "GET /dashboard/projects/{project}/resources/export", may: operator.Read,
			serve: a.exportResources},
		{pattern: "POST /dashboard/projects/{project}/resources/bulk", may: operator.Write,
			serve: a.bulkResources},
		{pattern: "GET /dashboard/projects/{project}/resources/new", may: operator.Write, serve: a.chooseKind},
		{pattern: "GET /dashboard/projects/{project}/kinds/{kind}", may: operator.Write, serve: a.newResource},
		{pattern: "POST /dashboard/projects/{project}/kinds/{kind}", may: operator.Write,
			serve: a.createResource, large: true, once: true},
		{pattern: "POST /dashboard/projects/{project}/kinds/{kind}/link", may: operator.Write,
			serve: a.createWithLink, large: true, fresh: true, once: true},
		{pattern: "POST /dashboard/projects/{project}/kinds/{kind}/address", may: operator.Write,
			serve: a.previewAddress},

		{pattern: "GET /dashboard/projects/{project}/resources/{id}", may: operator.Read,
			serve: a.showResource},
		{pattern: "GET /dashboard/projects/{project}/resources/{id}/edit", may: operator.Write,
			serve: a.editResource},
		{pattern: "POST /dashboard/projects/{project}/resources/{id}/edit", may: operator.Write,
			serve: a.changeResource, large: true},
		{pattern: "POST /dashboard/projects/{project}/resources/{id}/deploy", may: operator.Write,
			serve: a.deploy, once: true},
		{pattern: "POST /dashboard/projects/{project}/resources/{id}/password", may: operator.Write,
			serve: a.makePassword, once: true},
		{pattern: "POST /dashboard/projects/{project}/resources/{id}/delete", may: operator.Write,
			serve: a.deleteResource, ends: true},
		{pattern: "GET /dashboard/projects/{project}/addresses", may: operator.Read,
			serve: a.listAddresses, nav: "Addresses", group: calling},
	}
}

func (a *subscriberPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/subscribers", may: operator.Read,
			serve: a.listSubscribers, nav: "Subscribers", group: people},
		{pattern: "POST /dashboard/projects/{project}/subscribers/bulk", may: operator.Write,
			serve: a.bulkSubscribers},
		{pattern: "POST /dashboard/projects/{project}/subscribers", may: operator.Write,
			serve: a.createSubscriber, once: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/link", may: operator.Write,
			serve: a.createInvited, fresh: true, once: true},
		{pattern: "GET /dashboard/projects/{project}/subscribers/export", may: operator.Read,
			serve: a.exportSubscribers},
		{pattern: "GET /dashboard/projects/{project}/subscribers/new", may: operator.Write,
			serve: a.newSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/address", may: operator.Write,
			serve: a.previewSubscriberAddress},

		{pattern: "GET /dashboard/projects/{project}/subscribers/{id}", may: operator.Read,
			serve: a.showSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/disable", may: operator.Write,
			serve: a.disableSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/enable", may: operator.Write,
			serve: a.enableSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/revoke", may: operator.Write,
			serve: a.revokeSubscriber},
		{pattern: "GET /dashboard/projects/{project}/subscribers/{id}/edit", may: operator.Write,
			serve: a.editSubscriber, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/edit", may: operator.Write,
			serve: a.saveSubscriber, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/invite", may: operator.Write,
			serve: a.inviteSubscriber, once: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/invite/link", may: operator.Write,
			serve: a.handOverInvitation, fresh: true, once: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/invite/withdraw", may: operator.Write,
			serve: a.withdrawInvitation, ends: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/unlock", may: operator.Write,
			serve: a.unlockSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/factors/remove", may: operator.Write,
			serve: a.removeSubscriberFactor, fresh: true, ends: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/apps/revoke", may: operator.Write,
			serve: a.revokeApp, ends: true},
		{pattern: "GET /dashboard/projects/{project}/subscribers/{id}/export", may: operator.Write,
			serve: a.exportSubscriber, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/delete", may: operator.Write,
			serve: a.deleteSubscriber, fresh: true, ends: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/erase", may: operator.Write,
			serve: a.eraseDeleted, fresh: true, once: true},
	}
}

func (a *callPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/calls", may: operator.Read,
			serve: a.listCalls, nav: "Calls", group: calling},
		{pattern: "GET /dashboard/projects/{project}/calls/export", may: operator.Read, serve: a.exportCalls},
		{pattern: "GET /dashboard/projects/{project}/calls/live", may: operator.Read, serve: a.followCalls},
		{pattern: "GET /dashboard/projects/{project}/calls/{id}", may: operator.Read, serve: a.showCall},
		{pattern: "GET /dashboard/projects/{project}/calls/{id}/live", may: operator.Read, serve: a.followCall},
		{pattern: "POST /dashboard/projects/{project}/calls/{id}/hangup", may: operator.Write, serve: a.hangUp},
		{pattern: "POST /dashboard/projects/{project}/calls/{id}/room", may: operator.Write, serve: a.moveCall},
	}
}

func (a *roomPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/rooms/{id}", may: operator.Read, serve: a.showRoom},
		{pattern: "GET /dashboard/projects/{project}/rooms/{id}/live", may: operator.Read, serve: a.followRoom},
		{pattern: "POST /dashboard/projects/{project}/rooms/{id}/end", may: operator.Write, serve: a.endRoom},
		{pattern: "POST /dashboard/projects/{project}/rooms/{id}/members/{member}/{change}", may: operator.Write,
			serve: a.changeMember},
	}
}

func (a *recordingPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/recordings", may: operator.Read,
			serve: a.listRecordings, nav: "Recordings", group: recorded},
		{pattern: "POST /dashboard/projects/{project}/recordings", may: operator.Write,
			serve: a.uploadRecording, upload: a.maxUpload(), once: true},
		{pattern: "POST /dashboard/projects/{project}/recordings/bulk", may: operator.Write,
			serve: a.bulkRecordings},
		{pattern: "GET /dashboard/projects/{project}/recordings/export", may: operator.Read,
			serve: a.exportRecordings},
		{pattern: "POST /dashboard/projects/{project}/recordings/filters", may: operator.Read,
			serve: a.saveFilter},
		{pattern: "POST /dashboard/projects/{project}/recordings/filters/{id}/rename", may: operator.Read,
			serve: a.renameFilter},
		{pattern: "POST /dashboard/projects/{project}/recordings/filters/{id}/remove", may: operator.Read,
			serve: a.removeFilter, ends: true},
		{pattern: "GET /dashboard/projects/{project}/recordings/live", may: operator.Read,
			serve: a.followRecordings},
		{pattern: "GET /dashboard/projects/{project}/recordings/upload", may: operator.Write,
			serve: a.newRecording},
		{pattern: "GET /dashboard/projects/{project}/recordings/{sid}", may: operator.Read,
			serve: a.showRecording},
		{pattern: "POST /dashboard/projects/{project}/recordings/{sid}/delete", may: operator.Write,
			serve: a.deleteRecording, ends: true},
	}
}

func (a *tokenPages) routes() []route {
	return []route{
		{pattern: "POST /dashboard/projects/{project}/subscribers/find", may: operator.Write,
			serve: a.findSubscriber},
		{pattern: "GET /dashboard/projects/{project}/tokens", may: operator.Read,
			serve: a.listTokens, nav: "Tokens", group: access},
		{pattern: "GET /dashboard/projects/{project}/tokens/make/{what}", may: operator.Write,
			serve: a.newToken, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/tokens/make/{what}", may: operator.Write,
			serve: a.makeToken, fresh: true, once: true},
		{pattern: "POST /dashboard/projects/{project}/tokens/inspect", may: operator.Write,
			serve: a.inspectToken},
		{pattern: "POST /dashboard/projects/{project}/tokens/revoke", may: operator.Write,
			serve: a.revokeToken},
	}
}

func (a *keyPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/keys", may: operator.Read,
			serve: a.listKeys, nav: "API keys", group: access},
		{pattern: "POST /dashboard/projects/{project}/keys", may: operator.Write,
			serve: a.createKey, fresh: true, once: true},
		{pattern: "GET /dashboard/projects/{project}/keys/export", may: operator.Read, serve: a.exportKeys},
		{pattern: "POST /dashboard/projects/{project}/keys/bulk", may: operator.Write, serve: a.bulkKeys},
		{pattern: "GET /dashboard/projects/{project}/keys/new", may: operator.Write,
			serve: a.newKey, fresh: true},
		{pattern: "GET /dashboard/projects/{project}/keys/{id}", may: operator.Read, serve: a.showKey},
		{pattern: "POST /dashboard/projects/{project}/keys/{id}/rotate", may: operator.Write,
			serve: a.rotateKey, fresh: true, once: true},
		{pattern: "POST /dashboard/projects/{project}/keys/{id}/old-secret", may: operator.Write,
			serve: a.endOldKeySecret, ends: true},
		{pattern: "POST /dashboard/projects/{project}/keys/{id}/revoke", may: operator.Write,
			serve: a.revokeKey, ends: true},
	}
}

func (a *ingestKeyPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/ingest-keys", may: operator.Read,
			serve: a.listIngestKeys, nav: "Ingest keys", group: recorded},
		{pattern: "POST /dashboard/projects/{project}/ingest-keys", may: operator.Write,
			serve: a.createIngestKey, fresh: true, once: true},
		{pattern: "POST /dashboard/projects/{project}/ingest-keys/{id}/revoke", may: operator.Write,
			serve: a.revokeIngestKey, ends: true},
	}
}

func (a *clientPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/clients", may: operator.Read,
			serve: a.listClients, nav: "OAuth clients", group: access},
		{pattern: "POST /dashboard/projects/{project}/clients", may: operator.Write,
			serve: a.createClient, fresh: true, once: true},
		{pattern: "GET /dashboard/projects/{project}/clients/export", may: operator.Read, serve: a.exportClients},
		{pattern: "POST /dashboard/projects/{project}/clients/bulk", may: operator.Write, serve: a.bulkClients},
		{pattern: "GET /dashboard/projects/{project}/clients/new", may: operator.Write,
			serve: a.newClient, fresh: true},
		{pattern: "GET /dashboard/projects/{project}/clients/{id}", may: operator.Read, serve: a.showClient},
		{pattern: "GET /dashboard/projects/{project}/clients/{id}/edit", may: operator.Write,
			serve: a.editClient, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/edit", may: operator.Write,
			serve: a.changeClient, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/rotate", may: operator.Write,
			serve: a.rotateClient, fresh: true, once: true},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/old-secret", may: operator.Write,
			serve: a.endOldSecret, ends: true},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/delete", may: operator.Write,
			serve: a.deleteClient, ends: true},
	}
}

func (a *registrationTokenPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/registration-tokens", may: operator.Read,
			serve: a.listRegistrationTokens},
		{pattern: "POST /dashboard/projects/{project}/registration-tokens", may: operator.Write,
			serve: a.createRegistrationToken, fresh: true, once: true},
		{pattern: "POST /dashboard/projects/{project}/registration-tokens/{id}/revoke", may: operator.Write,
			serve: a.revokeRegistrationToken, ends: true},
	}
}

func (a *brandPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/clients/{id}/branding", may: operator.Read,
			serve: a.showClientBranding},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/branding", may: operator.Write,
			serve: a.saveClientBranding, upload: maxLogoForm, large: true},
		{pattern: "GET /dashboard/projects/{project}/clients/{id}/branding/preview", may: operator.Read,
			serve: a.showClientPreview},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/branding/preview", may: operator.Write,
			serve: a.showClientBranding, upload: maxLogoForm, large: true},
		{pattern: "GET /dashboard/projects/{project}/branding", may: operator.Read,
			serve: a.showBranding, nav: "Branding", group: look},
		{pattern: "POST /dashboard/projects/{project}/branding", may: operator.Write,
			serve: a.saveBranding, upload: maxLogoForm, large: true},
		{pattern: "GET /dashboard/projects/{project}/branding/preview", may: operator.Read,
			serve: a.showPreview},
		{pattern: "POST /dashboard/projects/{project}/branding/preview", may: operator.Write,
			serve: a.showBranding, upload: maxLogoForm, large: true},
	}
}

func (a *rulePages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/rules", may: operator.Read,
			serve: a.showRules, nav: "Rules", group: people},
		{pattern: "GET /dashboard/projects/{project}/rules/edit", may: operator.Write,
			serve: a.editRules, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/rules/edit", may: operator.Write,
			serve: a.saveRules, fresh: true},
	}
}
