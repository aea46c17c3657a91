package audit

import "slices"

// sentences describes each action in words. It includes actions that are no longer written, so that old
// events stay readable. The second text is shown if the action was refused; "" means the first text,
// followed by "refused".
var sentences = map[string]struct{ done, refused string }{
	"api_key.created":             {"API key created", ""},
	"api_key.old_secret_ended":    {"API key’s old secret revoked", ""},
	"api_key.revoked":             {"API key revoked", ""},
	"api_key.rotated":             {"API key secret rotated", ""},
	"api_key.updated":             {"API key updated", ""},
	"audit.pruned":                {"Old audit events deleted", ""},
	"backup.requested":            {"Backup requested", ""},
	"call.ended":                  {"Call ended", ""},
	"call.hung_up":                {"Call ended by a backend or an operator", ""},
	"call.moved_in":               {"Call moved into a room", ""},
	"call.moved_out":              {"Call moved out of a room", ""},
	"call.transfer_failed":        {"Transfer of a call failed", ""},
	"call.transferred":            {"Call transferred", ""},
	"certificate.deleted":         {"Certificate deleted", ""},
	"certificate.written":         {"Certificate stored", ""},
	"client.created":              {"OAuth client created", ""},
	"client.deleted":              {"OAuth client deleted", ""},
	"client.deletion_begun":       {"Deletion of a large OAuth client begun", ""},
	"client.old_secret_ended":     {"OAuth client’s old secret revoked", ""},
	"client.secret_rotated":       {"OAuth client secret rotated", ""},
	"client.updated":              {"OAuth client updated", ""},
	"consent.given":               {"Consent granted", "Consent denied"},
	"consent.revoked":             {"Consent revoked", ""},
	"callback.redelivered":        {"Status callback retried", ""},
	"callbacks.redelivered":       {"Failed status callbacks retried", ""},
	"deliveries.redelivered":      {"Failed deliveries retried", ""},
	"device.deleted":              {"Device deleted", ""},
	"device.registered":           {"Device registered", ""},
	"embed_key.created":           {"Embed key created", ""},
	"embed_key.revoked":           {"Embed key revoked", ""},
	"factor.added":                {"Second factor added", ""},
	"factor.removed":              {"Second factor removed", ""},
	"factor.renamed":              {"Second factor renamed", ""},
	"grant.created":               {"App authorized", ""},
	"grant.revoked":               {"App’s tokens revoked", ""},
	"link.created":                {"One-time link created", ""},
	"login":                       {"Signed in", "Sign-in refused"},
	"login.raised":                {"Identity confirmed", ""},
	"installation.restored":       {"Restored from a backup", ""},
	"invitation.withdrawn":        {"Invitation withdrawn", ""},
	"ingest_key.created":          {"Ingest key created", ""},
	"ingest_key.revoked":          {"Ingest key revoked", ""},
	"logout.redelivered":          {"Logout notification retried", ""},
	"mail.requested":              {"Mail requested", ""},
	"mail.retried":                {"Mail retried", ""},
	"master_key.replaced":         {"Master key replaced", ""},
	"management":                  {"Change attempted", "Change refused"},
	"operator.created":            {"Operator created", ""},
	"operator.deleted":            {"Operator deleted", ""},
	"operator.disabled":           {"Operator disabled", ""},
	"operator.enabled":            {"Operator enabled", ""},
	"operator.password_changed":   {"Operator password changed", ""},
	"operator.roles_changed":      {"Operator roles changed", ""},
	"operator.updated":            {"Operator updated", ""},
	"operator_link.created":       {"Operator link created", ""},
	"operator_link.used":          {"Operator link used", ""},
	"operator_link.withdrawn":     {"Invitation withdrawn", ""},
	"phone_number.created":        {"Phone number added", ""},
	"phone_number.deleted":        {"Phone number removed", ""},
	"phone_route.assigned":        {"Phone number assigned", ""},
	"project.created":             {"Project created", ""},
	"project.deleted":             {"Project deleted", ""},
	"project.deletion_begun":      {"Deletion of a large project begun", ""},
	"project.updated":             {"Project updated", ""},
	"recording.deleted":           {"Recording deleted", ""},
	"recording.started":           {"Recording of a call started", ""},
	"recording.stored":            {"Recording stored", ""},
	"recording.updated":           {"Recording updated", ""},
	"recovery_code.used":          {"Recovery code used", ""},
	"recovery_codes.replaced":     {"Recovery codes replaced", ""},
	"resource.created":            {"Resource created", ""},
	"resource.deleted":            {"Resource deleted", ""},
	"resource.deployed":           {"Resource deployed", ""},
	"resource.updated":            {"Resource updated", ""},
	"registration_token.created":  {"Initial access token created", ""},
	"registration_token.revoked":  {"Initial access token revoked", ""},
	"recording_filter.removed":    {"Saved filter removed", ""},
	"recording_filter.renamed":    {"Saved filter renamed", ""},
	"recording_filter.saved":      {"Filter saved", ""},
	"retention_rule.created":      {"Retention rule added", ""},
	"retention_rule.deleted":      {"Retention rule removed", ""},
	"ring.changed":                {"Installation keys rotated", ""},
	"ring.swept":                  {"Old installation keys deleted", ""},
	"session.ended":               {"Signed out", ""},
	"session.ended_all":           {"Signed out everywhere", ""},
	"session.raised":              {"Identity confirmed", ""},
	"signing_key.created":         {"Webhook signing key created", ""},
	"signing_key.rotated":         {"Webhook signing key rotated", ""},
	"room.ended":                  {"Room session ended", ""},
	"room.hung_up":                {"Room session ended by a backend or an operator", ""},
	"room.member_muted":           {"Member of a room muted by an operator", ""},
	"room.member_unmuted":         {"Member of a room unmuted by an operator", ""},
	"room.started":                {"Room session started", ""},
	"sip_address.created":         {"SIP address created", ""},
	"sip_address.deleted":         {"SIP address deleted", ""},
	"sip_address.updated":         {"SIP address updated", ""},
	"sip_credential.created":      {"SIP credential created", ""},
	"sip_credential.deleted":      {"SIP credential deleted", ""},
	"sip_credential.updated":      {"SIP credential updated", ""},
	"sip_endpoint.password_made":  {"Password of a SIP endpoint made", ""},
	"subscriber.created":          {"Subscriber created", ""},
	"subscriber.deleted":          {"Subscriber deleted", ""},
	"subscriber.disabled":         {"Subscriber disabled", ""},
	"subscriber.enabled":          {"Subscriber enabled", ""},
	"subscriber.erased":           {"Subscriber erased", ""},
	"subscriber.password_changed": {"Subscriber password changed", ""},
	"subscriber.rehashed":         {"Password hash upgraded", ""},
	"subscriber.updated":          {"Subscriber updated", ""},
	"token.issued":                {"Token created manually", ""},
	"token.reused":                {"Refresh token reused", "Refresh token reused"},
	"token.revoked":               {"Token revoked", ""},
	"upstream.created":            {"Upstream provider created", ""},
	"upstream.deleted":            {"Upstream provider deleted", ""},
	"upstream.linked":             {"Account of an upstream provider linked", ""},
	"upstream.updated":            {"Upstream provider updated", ""},
	"webhook.created":             {"Webhook created", ""},
	"webhook.deleted":             {"Webhook deleted", ""},
	"webhook.redelivered":         {"Webhook delivery retried", ""},
	"webhook.tested":              {"Webhook tested", ""},
	"webhook.updated":             {"Webhook updated", ""},
}

// Say describes an action in words. If the action is unknown, Say returns its name.
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
