package audit

import "slices"

// sentences describes each action in words, including actions that are no longer written,
// so that old events stay readable. Actions that can be refused have a second sentence.
var sentences = map[string]struct{ done, refused string }{
	"api_key.created":             {"API key made", ""},
	"api_key.revoked":             {"API key revoked", ""},
	"api_key.rotated":             {"API key replaced by another", ""},
	"api_key.updated":             {"API key changed", ""},
	"audit.pruned":                {"Old events of the audit trail deleted", ""},
	"call.ended":                  {"Call ended", ""},
	"call.hung_up":                {"Call ended by a backend or an operator", ""},
	"certificate.deleted":         {"Certificate deleted", ""},
	"certificate.written":         {"Certificate stored", ""},
	"client.created":              {"OAuth client made", ""},
	"client.deleted":              {"OAuth client deleted", ""},
	"client.old_secret_ended":     {"Old secret of an OAuth client ended", ""},
	"client.secret_rotated":       {"OAuth client given another secret", ""},
	"client.updated":              {"OAuth client changed", ""},
	"consent.given":               {"App allowed by its user", "App denied by its user"},
	"consent.revoked":             {"App disconnected", ""},
	"deliveries.redelivered":      {"Lost deliveries sent again", ""},
	"device.deleted":              {"Device forgotten", ""},
	"device.registered":           {"Device registered", ""},
	"embed_key.created":           {"Embed key made", ""},
	"embed_key.revoked":           {"Embed key revoked", ""},
	"factor.added":                {"Second factor added", ""},
	"factor.removed":              {"Second factor removed", ""},
	"factor.renamed":              {"Second factor renamed", ""},
	"grant.created":               {"App given tokens", ""},
	"grant.revoked":               {"App’s tokens ended", ""},
	"link.created":                {"Link for a mail made", ""},
	"login":                       {"Signed in", "Sign-in refused"},
	"login.raised":                {"Proved who they are once more", ""},
	"logout.redelivered":          {"App told of a sign-out again", ""},
	"mail.requested":              {"Mail asked for", ""},
	"mail.retried":                {"Mail sent again", ""},
	"management":                  {"Change tried", "Change refused"},
	"operator.created":            {"Operator made", ""},
	"operator.deleted":            {"Operator deleted", ""},
	"operator.disabled":           {"Operator disabled", ""},
	"operator.enabled":            {"Operator enabled", ""},
	"operator.password_changed":   {"Operator’s password changed", ""},
	"operator.roles_changed":      {"Operator’s roles changed", ""},
	"operator.updated":            {"Operator changed", ""},
	"operator_link.created":       {"Link for an operator made", ""},
	"operator_link.used":          {"Link for an operator used", ""},
	"operator_link.withdrawn":     {"Invitation withdrawn", ""},
	"phone_route.assigned":        {"Phone number assigned", ""},
	"project.created":             {"Project made", ""},
	"project.deleted":             {"Project deleted", ""},
	"project.updated":             {"Project changed", ""},
	"recording.deleted":           {"Recording deleted", ""},
	"recording.stored":            {"Recording stored", ""},
	"recording.updated":           {"Recording changed", ""},
	"recovery_code.used":          {"Recovery code used", ""},
	"recovery_codes.replaced":     {"Recovery codes made", ""},
	"resource.created":            {"Resource made", ""},
	"resource.deleted":            {"Resource deleted", ""},
	"resource.deployed":           {"Resource deployed", ""},
	"resource.updated":            {"Resource changed", ""},
	"ring.changed":                {"Keys of the installation took turns", ""},
	"ring.swept":                  {"Old keys of the installation deleted", ""},
	"session.ended":               {"Signed out", ""},
	"session.ended_all":           {"Signed out everywhere", ""},
	"session.raised":              {"Proved who they are once more", ""},
	"signing_key.created":         {"Signing key of webhooks made", ""},
	"signing_key.rotated":         {"Signing key of webhooks replaced", ""},
	"sip_address.created":         {"SIP address made", ""},
	"sip_address.deleted":         {"SIP address deleted", ""},
	"sip_address.updated":         {"SIP address changed", ""},
	"sip_credential.created":      {"SIP credential made", ""},
	"sip_credential.deleted":      {"SIP credential deleted", ""},
	"sip_credential.updated":      {"SIP credential changed", ""},
	"subscriber.created":          {"Subscriber added", ""},
	"subscriber.deleted":          {"Subscriber deleted", ""},
	"subscriber.disabled":         {"Subscriber disabled", ""},
	"subscriber.enabled":          {"Subscriber enabled", ""},
	"subscriber.erased":           {"Person erased", ""},
	"subscriber.password_changed": {"Subscriber’s password changed", ""},
	"subscriber.rehashed":         {"Password stored in a newer way", ""},
	"subscriber.updated":          {"Subscriber changed", ""},
	"token.issued":                {"Token made by hand", ""},
	"token.reused":                {"Refresh token came twice", "Refresh token came twice"},
	"token.revoked":               {"Token revoked", ""},
	"webhook.created":             {"Webhook made", ""},
	"webhook.deleted":             {"Webhook deleted", ""},
	"webhook.redelivered":         {"Webhook’s event sent again", ""},
	"webhook.tested":              {"Webhook tested", ""},
	"webhook.updated":             {"Webhook changed", ""},
}

// Say describes an action in words. It returns the name of an unknown action.
func Say(action string, o Outcome) string {
	s, ok := sentences[action]
	switch {
	case !ok:
		return action
	case o == Refused && s.refused != "":
		return s.refused
	case o == Refused:
		return s.done + ", refused"
	}
	return s.done
}

// Actions returns the names of all actions that have a description, sorted.
func Actions() []string {
	var all []string
	for action := range sentences {
		all = append(all, action)
	}
	slices.Sort(all)
	return all
}
