package dashboard

import (
	"github.com/selvage/selvage/operator"
)

func (a *operatorPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/operators", may: operator.KeepOperators,
			serve: a.listOperators, nav: "Operators", group: installation},
		{pattern: "GET /dashboard/operators/export", may: operator.KeepOperators, serve: a.exportOperators},
		{pattern: "POST /dashboard/operators/bulk", may: operator.KeepOperators,
			serve: a.bulkOperators, fresh: true},
		{pattern: "GET /dashboard/operators/invite", may: operator.KeepOperators,
			serve: a.showInvite, fresh: true},
		{pattern: "POST /dashboard/operators/invite", may: operator.KeepOperators,
			serve: a.invite, fresh: true, once: true},
		{pattern: "POST /dashboard/operators/invitations/{id}/renew", may: operator.KeepOperators,
			serve: a.renewInvitation, fresh: true, once: true},
		{pattern: "POST /dashboard/operators/invitations/{id}/withdraw", may: operator.KeepOperators,
			serve: a.withdrawInvitation, ends: true},

		{pattern: "GET /dashboard/operators/{id}", may: operator.KeepOperators, serve: a.showOperator},
		{pattern: "POST /dashboard/operators/{id}/role", may: operator.KeepOperators,
			serve: a.changeRole, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/disable", may: operator.KeepOperators,
			serve: a.disableOperator, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/enable", may: operator.KeepOperators,
			serve: a.enableOperator, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/link", may: operator.KeepOperators,
			serve: a.recoverOperator, fresh: true, once: true},
		{pattern: "POST /dashboard/operators/{id}/revoke", may: operator.KeepOperators,
			serve: a.revokeSecrets, fresh: true},
		{pattern: "POST /dashboard/operators/{id}/delete", may: operator.KeepOperators,
			serve: a.deleteOperator, fresh: true, ends: true},
	}
}

func (a *settingsPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/_styles", may: operator.KeepOperators, serve: a.showStyles},
		{pattern: "GET /dashboard/settings", may: operator.KeepOperators,
			serve: a.showSettings, nav: "Settings", group: installation},
		{pattern: "GET /dashboard/settings/doctor", may: operator.KeepOperators, serve: a.showDoctor},
		{pattern: "POST /dashboard/settings/keys", may: operator.KeepOperators,
			serve: a.rotateRing, fresh: true, once: true},
		{pattern: "GET /dashboard/limits", may: operator.KeepOperators,
			serve: a.showLimits, nav: "Limits", group: installation},
	}
}

func (a *auditPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/projects/{project}/audit", may: operator.Read,
			serve: a.listAudit, nav: "Audit of this project", group: project},
		{pattern: "GET /dashboard/projects/{project}/audit/live", may: operator.Read, serve: a.followAudit},
		{pattern: "GET /dashboard/projects/{project}/audit/export", may: operator.Read, serve: a.exportAudit},
		{pattern: "GET /dashboard/audit", may: operator.KeepOperators,
			serve: a.listAudit, nav: "Audit of everything", group: installation},
		{pattern: "GET /dashboard/audit/live", may: operator.KeepOperators, serve: a.followAudit},
		{pattern: "GET /dashboard/audit/export", may: operator.KeepOperators, serve: a.exportAudit},
	}
}

func (a *accountPages) routes() []route {
	return []route{
		{pattern: "POST /dashboard/language", may: anyone, serve: a.setLanguage},
		{pattern: "POST /dashboard/account/theme", may: signedIn, serve: a.setTheme},
		{pattern: "GET /dashboard/account", may: signedIn, serve: a.showAccount},
		{pattern: "POST /dashboard/account/name", may: signedIn, serve: a.changeName},
		{pattern: "POST /dashboard/account/password", may: signedIn,
			serve: a.changePassword, fresh: true, enters: true},
		{pattern: "GET /dashboard/account/app", may: signedIn, serve: a.showApp, fresh: true},
		{pattern: "POST /dashboard/account/app", may: signedIn, serve: a.addApp, fresh: true, enters: true},
		{pattern: "GET /dashboard/account/passkey", may: signedIn, serve: a.showPasskey, fresh: true},
		{pattern: "POST /dashboard/account/passkey", may: signedIn,
			serve: a.addPasskey, fresh: true, enters: true},
		{pattern: "POST /dashboard/account/passkeys/rename", may: signedIn,
			serve: a.renamePasskey, fresh: true},
		{pattern: "POST /dashboard/account/codes", may: signedIn, serve: a.newCodes, fresh: true, once: true},
		{pattern: "POST /dashboard/account/factors/remove", may: signedIn,
			serve: a.removeFactor, fresh: true, ends: true},
		{pattern: "POST /dashboard/account/sessions/revoke", may: signedIn, serve: a.revokeSession, ends: true},
	}
}

func (a *loginPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/login", may: anyone, serve: a.showLogin},
		{pattern: "POST /dashboard/login", may: anyone, serve: a.logIn, enters: true},
		{pattern: "POST /dashboard/login/passkey", may: anyone, serve: a.logInByPasskey, enters: true},
		{pattern: "GET /dashboard/setup", may: anyone, serve: a.showSetup},
		{pattern: "POST /dashboard/setup", may: anyone, serve: a.setUp, enters: true},
		{pattern: "POST /dashboard/logout", may: signedIn, serve: a.logOut},
	}
}

func (a *factorPages) routes() []route {
	return []route{
		{pattern: "GET /dashboard/factor", may: halfway, serve: a.showFactor},
		{pattern: "POST /dashboard/factor", may: halfway, serve: a.checkFactor, enters: true},
		{pattern: "GET /dashboard/enrol", may: halfway, serve: a.showEnrol},
		{pattern: "POST /dashboard/enrol", may: halfway, serve: a.enrol, enters: true},
		{pattern: "GET /dashboard/confirm", may: signedIn, serve: a.showConfirm},
		{pattern: "POST /dashboard/confirm", may: signedIn, serve: a.confirm, enters: true},
	}
}
