package dashboard

import "github.com/selvage/selvage/operator"

// Who may have a route beside those whose role allows an action.
const (
	anyone   operator.Action = ""          // nobody needs to be signed in
	signedIn operator.Action = "signed in" // each operator, for what is its own
	halfway  operator.Action = "halfway"   // whose password was right and who has a second factor to show, or to set up
)

// A route is one thing that is served.
type route struct {
	pattern string
	may     operator.Action // what the operator's role must allow: in the project of {project}, or in the installation
	serve   func(*API, *visit) error
	nav     string // its title in the rail; "" for what is not there
	fresh   bool   // the operator must have proven lately who it is
	large   bool   // its form may hold a document
	upload  bool   // its form ends with a file
}

// routes are all of them. Each page is a group; those that the rail shows are in its order.
func routes() []route {
	return []route{
		{pattern: "GET /dashboard", may: signedIn, serve: (*API).front},
		{pattern: "GET /dashboard/login", may: anyone, serve: (*API).showLogin},
		{pattern: "POST /dashboard/login", may: anyone, serve: (*API).logIn},
		{pattern: "POST /dashboard/login/passkey", may: anyone, serve: (*API).logInByPasskey},
		{pattern: "GET /dashboard/factor", may: halfway, serve: (*API).showFactor},
		{pattern: "POST /dashboard/factor", may: halfway, serve: (*API).checkFactor},
		{pattern: "GET /dashboard/enrol", may: halfway, serve: (*API).showEnrol},
		{pattern: "POST /dashboard/enrol", may: halfway, serve: (*API).enrol},
		{pattern: "GET /dashboard/setup", may: anyone, serve: (*API).showSetup},
		{pattern: "POST /dashboard/setup", may: anyone, serve: (*API).setUp},
		{pattern: "GET /dashboard/_styles", may: operator.KeepOperators, serve: (*API).showStyles},
		{pattern: "POST /dashboard/account/theme", may: signedIn, serve: (*API).setTheme},
		{pattern: "POST /dashboard/logout", may: signedIn, serve: (*API).logOut},
		{pattern: "GET /dashboard/confirm", may: signedIn, serve: (*API).showConfirm},
		{pattern: "POST /dashboard/confirm", may: signedIn, serve: (*API).confirm},

		{pattern: "GET /dashboard/projects/{project}", may: operator.Read, serve: (*API).home, nav: "Home"},
		{pattern: "GET /dashboard/projects/{project}/resources", may: operator.Read, serve: (*API).listResources, nav: "Resources"},
		{pattern: "GET /dashboard/projects/{project}/resources/new", may: operator.Write, serve: (*API).chooseKind},
		{pattern: "GET /dashboard/projects/{project}/kinds/{kind}", may: operator.Write, serve: (*API).newResource},
		{pattern: "POST /dashboard/projects/{project}/kinds/{kind}", may: operator.Write, serve: (*API).createResource, large: true},
		{pattern: "POST /dashboard/projects/{project}/kinds/{kind}/address", may: operator.Write, serve: (*API).tellResourceAddress},
		{pattern: "GET /dashboard/projects/{project}/resources/{id}", may: operator.Read, serve: (*API).showResource},
		{pattern: "GET /dashboard/projects/{project}/resources/{id}/edit", may: operator.Write, serve: (*API).editResource},
		{pattern: "POST /dashboard/projects/{project}/resources/{id}/edit", may: operator.Write, serve: (*API).changeResource, large: true},
		{pattern: "POST /dashboard/projects/{project}/resources/{id}/deploy", may: operator.Write, serve: (*API).deploy},
		{pattern: "POST /dashboard/projects/{project}/resources/{id}/delete", may: operator.Write, serve: (*API).deleteResource},
		{pattern: "GET /dashboard/projects/{project}/addresses", may: operator.Read, serve: (*API).listAddresses, nav: "Addresses"},

		{pattern: "GET /dashboard/projects/{project}/subscribers", may: operator.Read, serve: (*API).listSubscribers, nav: "Subscribers"},
		{pattern: "POST /dashboard/projects/{project}/subscribers", may: operator.Write, serve: (*API).createSubscriber},
		{pattern: "GET /dashboard/projects/{project}/subscribers/new", may: operator.Write, serve: (*API).newSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/find", may: operator.Write, serve: (*API).findSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/address", may: operator.Write, serve: (*API).tellSubscriberAddress},
		{pattern: "GET /dashboard/projects/{project}/subscribers/{id}", may: operator.Read, serve: (*API).showSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/disable", may: operator.Write, serve: (*API).disableSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/enable", may: operator.Write, serve: (*API).enableSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/revoke", may: operator.Write, serve: (*API).revokeSubscriber},
		{pattern: "GET /dashboard/projects/{project}/subscribers/{id}/edit", may: operator.Write, serve: (*API).editSubscriber, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/edit", may: operator.Write, serve: (*API).saveSubscriber, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/invite", may: operator.Write, serve: (*API).inviteSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/unlock", may: operator.Write, serve: (*API).unlockSubscriber},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/factors/remove", may: operator.Write, serve: (*API).removeSubscriberFactor, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/apps/revoke", may: operator.Write, serve: (*API).revokeApp},
		{pattern: "GET /dashboard/projects/{project}/subscribers/{id}/export", may: operator.Write, serve: (*API).exportSubscriber, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/erase", may: operator.Write, serve: (*API).eraseSubscriber, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/subscribers/{id}/delete", may: operator.Write, serve: (*API).deleteSubscriber},

		{pattern: "GET /dashboard/projects/{project}/recordings", may: operator.Read, serve: (*API).listRecordings, nav: "Recordings"},
		{pattern: "POST /dashboard/projects/{project}/recordings", may: operator.Write, serve: (*API).uploadRecording, upload: true},
		{pattern: "GET /dashboard/projects/{project}/recordings/live", may: operator.Read, serve: (*API).followRecordings},
		{pattern: "GET /dashboard/projects/{project}/recordings/upload", may: operator.Write, serve: (*API).newRecording},
		{pattern: "GET /dashboard/projects/{project}/recordings/{sid}", may: operator.Read, serve: (*API).showRecording},
		{pattern: "POST /dashboard/projects/{project}/recordings/{sid}/delete", may: operator.Write, serve: (*API).deleteRecording},

		{pattern: "GET /dashboard/projects/{project}/tokens", may: operator.Read, serve: (*API).listTokens, nav: "Tokens"},
		{pattern: "GET /dashboard/projects/{project}/tokens/make/{what}", may: operator.Write, serve: (*API).newToken, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/tokens/make/{what}", may: operator.Write, serve: (*API).makeToken, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/tokens/inspect", may: operator.Write, serve: (*API).inspectToken},
		{pattern: "POST /dashboard/projects/{project}/tokens/revoke", may: operator.Write, serve: (*API).revokeToken},

		{pattern: "GET /dashboard/projects/{project}/keys", may: operator.Read, serve: (*API).listKeys, nav: "API keys"},
		{pattern: "POST /dashboard/projects/{project}/keys", may: operator.Write, serve: (*API).createKey, fresh: true},
		{pattern: "GET /dashboard/projects/{project}/keys/new", may: operator.Write, serve: (*API).newKey, fresh: true},
		{pattern: "GET /dashboard/projects/{project}/keys/{id}", may: operator.Read, serve: (*API).showKey},
		{pattern: "POST /dashboard/projects/{project}/keys/{id}/rotate", may: operator.Write, serve: (*API).rotateKey, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/keys/{id}/revoke", may: operator.Write, serve: (*API).revokeKey},

		{pattern: "GET /dashboard/projects/{project}/clients", may: operator.Read, serve: (*API).listClients, nav: "OAuth clients"},
		{pattern: "POST /dashboard/projects/{project}/clients", may: operator.Write, serve: (*API).createClient, fresh: true},
		{pattern: "GET /dashboard/projects/{project}/clients/new", may: operator.Write, serve: (*API).newClient, fresh: true},
		{pattern: "GET /dashboard/projects/{project}/clients/{id}", may: operator.Read, serve: (*API).showClient},
		{pattern: "GET /dashboard/projects/{project}/clients/{id}/edit", may: operator.Write, serve: (*API).editClient, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/edit", may: operator.Write, serve: (*API).changeClient, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/rotate", may: operator.Write, serve: (*API).rotateClient, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/old-secret", may: operator.Write, serve: (*API).endOldSecret},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/delete", may: operator.Write, serve: (*API).deleteClient},

		{pattern: "GET /dashboard/projects/{project}/clients/{id}/branding", may: operator.Read, serve: (*API).showClientBranding},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/branding", may: operator.Write, serve: (*API).saveClientBranding, upload: true},
		{pattern: "GET /dashboard/projects/{project}/clients/{id}/branding/preview", may: operator.Read, serve: (*API).showClientPreview},
		{pattern: "POST /dashboard/projects/{project}/clients/{id}/branding/preview", may: operator.Write, serve: (*API).previewClientBranding},

		{pattern: "GET /dashboard/projects/{project}/branding", may: operator.Read, serve: (*API).showBranding, nav: "Branding"},
		{pattern: "POST /dashboard/projects/{project}/branding", may: operator.Write, serve: (*API).saveBranding, upload: true},
		{pattern: "GET /dashboard/projects/{project}/branding/preview", may: operator.Read, serve: (*API).showPreview},
		{pattern: "POST /dashboard/projects/{project}/branding/preview", may: operator.Write, serve: (*API).previewBranding},

		{pattern: "GET /dashboard/projects/{project}/rules", may: operator.Read, serve: (*API).showPolicies, nav: "Rules"},
		{pattern: "GET /dashboard/projects/{project}/rules/edit", may: operator.Write, serve: (*API).editPolicies, fresh: true},
		{pattern: "POST /dashboard/projects/{project}/rules/edit", may: operator.Write, serve: (*API).savePolicies, fresh: true},

		{pattern: "GET /dashboard/projects/{project}/audit", may: operator.Read, serve: (*API).listAudit, nav: "Audit of this project"},
		{pattern: "GET /dashboard/projects/{project}/audit/live", may: operator.Read, serve: (*API).followAudit},
		{pattern: "GET /dashboard/projects/{project}/audit/export", may: operator.Read, serve: (*API).exportAudit},

		{pattern: "POST /dashboard/projects/{project}/delete", may: operator.DeleteProject, serve: (*API).deleteProject, fresh: true},

		{pattern: "GET /dashboard/projects", may: signedIn, serve: (*API).listProjects, nav: "Projects"},
		{pattern: "POST /dashboard/projects", may: operator.MakeProject, serve: (*API).createProject},

		{pattern: "GET /dashboard/operators", may: operator.KeepOperators, serve: (*API).listOperators, nav: "Operators"},
		{pattern: "GET /dashboard/operators/invite", may: operator.KeepOperators, serve: (*API).showInvite, fresh: true},
		{pattern: "POST /dashboard/operators/invite", may: operator.KeepOperators, serve: (*API).invite, fresh: true},
		{pattern: "POST /dashboard/operators/invitations/{id}/renew", may: operator.KeepOperators, serve: (*API).renewInvitation, fresh: true},
		{pattern: "POST /dashboard/operators/invitations/{id}/withdraw", may: operator.KeepOperators, serve: (*API).withdrawInvitation},
		{pattern: "GET /dashboard/operators/{id}", may: operator.KeepOperators, serve: (*API).showOperator},
		{pattern: "POST /dashboard/operators/{id}/role", may: operator.KeepOperators, serve: (*API).changeRole, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/disable", may: operator.KeepOperators, serve: (*API).disableOperator, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/enable", may: operator.KeepOperators, serve: (*API).enableOperator, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/link", may: operator.KeepOperators, serve: (*API).recoverOperator, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/revoke", may: operator.KeepOperators, serve: (*API).endMadeBy, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/delete", may: operator.KeepOperators, serve: (*API).deleteOperator, fresh: true},

		{pattern: "GET /dashboard/settings", may: operator.KeepOperators, serve: (*API).showSettings, nav: "Settings"},
		{pattern: "GET /dashboard/settings/doctor", may: operator.KeepOperators, serve: (*API).showDoctor},
		{pattern: "POST /dashboard/settings/keys", may: operator.KeepOperators, serve: (*API).rotateRing, fresh: true},
		{pattern: "POST /dashboard/settings/mail", may: operator.KeepOperators, serve: (*API).testMail, fresh: true},

		{pattern: "GET /dashboard/audit", may: operator.KeepOperators, serve: (*API).listAudit, nav: "Audit of everything"},
		{pattern: "GET /dashboard/audit/live", may: operator.KeepOperators, serve: (*API).followAudit},
		{pattern: "GET /dashboard/audit/export", may: operator.KeepOperators, serve: (*API).exportAudit},

		{pattern: "GET /dashboard/account", may: signedIn, serve: (*API).showAccount},
		{pattern: "POST /dashboard/account/password", may: signedIn, serve: (*API).changePassword, fresh: true},
		{pattern: "GET /dashboard/account/app", may: signedIn, serve: (*API).showApp, fresh: true},
		{pattern: "POST /dashboard/account/app", may: signedIn, serve: (*API).addApp, fresh: true},
		{pattern: "GET /dashboard/account/passkey", may: signedIn, serve: (*API).showPasskey, fresh: true},
		{pattern: "POST /dashboard/account/passkey", may: signedIn, serve: (*API).addPasskey, fresh: true},
		{pattern: "POST /dashboard/account/passkeys/rename", may: signedIn, serve: (*API).renamePasskey, fresh: true},
		{pattern: "POST /dashboard/account/codes", may: signedIn, serve: (*API).newCodes, fresh: true},
		{pattern: "POST /dashboard/account/factors/remove", may: signedIn, serve: (*API).removeFactor, fresh: true},
		{pattern: "POST /dashboard/account/sessions/revoke", may: signedIn, serve: (*API).revokeSession},
	}
}
