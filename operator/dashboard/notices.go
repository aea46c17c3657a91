package dashboard

import (
	"encoding/base64"
	"strings"
	"unicode"

	"github.com/selvage/selvage/internal/words"
)

// deletedCookie holds the name of a deleted row until the notice about it is shown.
const deletedCookie = "selvage-gone"

// rememberDeleted stores the name of a row that is being deleted, for the notice on the next page.
// This keeps the name out of the URL.
func (a *site) rememberDeleted(v *visit, name string) {
	short := []rune(name)
	text := string(short[:min(len(short), 200)])
	a.cookies.Set(v.w, v.r, deletedCookie, base64.RawURLEncoding.EncodeToString([]byte(text)))
}

// done reports whether the URL says that the named change was just made.
func (v *visit) done(what string) bool { return v.r.URL.Query().Get("done") == what }

// quote quotes a name for a sentence and isolates its writing direction. It removes characters that
// control the direction, since they could reorder the rest of the sentence.
func (v *visit) quote(name string) string {
	isolated := "\u2068" + strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, name) + "\u2069"
	return v.say(words.Textf("“%s”", isolated))
}

// notice returns the notice for the page with the given title: the notice that its handler set, or
// else the notice that the URL selects. A notice with the name of a deleted row removes the cookie
// that holds the name.
func (a *site) notice(v *visit, title string) string {
	if v.notice != "" {
		return v.notice
	}
	text := v.counted(v.say(notices[v.r.URL.Query().Get("done")]))
	if !strings.Contains(text, "{gone}") {
		return strings.ReplaceAll(text, "{this}", v.quote(v.say(title)))
	}

	deleted := ""
	if kept := a.cookies.Read(v.r, deletedCookie); kept != "" {
		a.cookies.Set(v.w, v.r, deletedCookie, "")
		if name, err := base64.RawURLEncoding.DecodeString(kept); err == nil {
			deleted = " " + v.quote(strings.ToValidUTF8(string(name), ""))
		}
	}
	return strings.ReplaceAll(text, " {gone}", deleted)
}

// notices maps the names in URLs to sentences. A URL cannot supply its own text. Each sentence
// describes what was done and what the consequences are. {this} is the title of the page, {gone} is
// the name of the deleted row, and {n} is the number of changed rows.
var notices = map[string]string{
	// Names and filters
	"changed":       "Changes saved.",
	"named":         "Name changed. Other operators and the audit trail show it.",
	"noneselected":  "Nothing is selected. Tick the rows first.",
	"filtersaved":   "Filter saved. Only you see it.",
	"filterrenamed": "Filter renamed.",
	"filterremoved": "Filter removed.",

	// Sessions and tokens
	"ended":        "Session ended.",
	"othersended":  "All your other sessions have ended.",
	"signedout":    "{this} is signed out everywhere. All sessions and tokens have ended.",
	"tokenrevoked": "Revoked. It stops working everywhere within a second.",
	"apprevoked":   "App disconnected from {this}. It has lost its access and must ask again.",
	"madeended":    "The selected secrets are revoked everywhere within a second.",

	// Passwords and factors
	"password": "Password changed. All your other sessions have ended.",
	"passkey":  "Passkey added.",
	"factor":   "Second factor removed.",
	"unlocked": "{this} is unlocked. Earlier wrong passwords no longer count, and they can try again.",

	// Operators
	"role":              "Role changed.",
	"operatordisabled":  "Operator disabled. All their sessions have ended.",
	"operatorenabled":   "Operator enabled. They can sign in again.",
	"operatordeleted":   "Operator deleted.",
	"operatorsdisabled": "Operators disabled: {n}.",
	"operatorsenabled":  "Operators enabled: {n}.",
	"invited":           "An invitation to {this} is on its way by mail. Its link lets them choose a password.",
	"invitedhere": "No mail server is set, so the invitation to {this} was kept on this machine. " +
		"Open it in the mailbox, or make a link to hand over.",
	"withdrawn": "Invitation withdrawn. Its link no longer works.",

	// Projects and resources
	"projectadded":     "Project {this} created. Its first steps are below.",
	"projectdeleted":   "Project {gone} deleted, with everything in it.",
	"resourceadded":    "{this} created.",
	"resourcedeleted":  "Resource {gone} deleted, with its addresses. Calls to them are refused.",
	"resourcesdeleted": "Resources deleted: {n}.",
	"deployed":         "Deployed. The newest version is first in the list below.",

	// Subscribers
	"subscriberadded":      "{this} created.",
	"subscriberdeleted":    "Subscriber {gone} deleted, with all addresses, sessions and tokens.",
	"subscribersdisabled":  "Subscribers disabled: {n}.",
	"subscribersenabled":   "Subscribers enabled: {n}.",
	"subscriberssignedout": "Subscribers signed out everywhere: {n}.",
	"disabled": "{this} is disabled. All sessions and tokens have ended, and nobody can sign in to the " +
		"account until you enable it below.",
	"enabled": "{this} is enabled again and can sign in.",
	"erased":  "Subscriber erased. In this installation, only recordings on hold may still identify them.",
	"remainserased": "Subscriber erased. Recordings on hold remain, as do names, phone numbers and addresses " +
		"that data contains without the id.",
	"noterased": "{this} exists again, since it was imported in the meantime. Nothing was erased.",

	// API keys, signing keys and ingest keys
	"keyended":    "The old secret of {this} has been revoked. Only the new one works.",
	"keysrevoked": "API keys revoked: {n}.",
	"revoked": "API key {gone} revoked, with all tokens created with it. Requests that still use it " +
		"are refused.",
	"rotated":       "The next key is now in use. Signatures and tokens made with the previous one remain valid.",
	"ingestrevoked": "Ingest key revoked. Uploads to its URL are refused.",

	// Clients and upstream providers
	"clientended": "The old secret of {this} has been revoked. Only the new one works.",
	"clientdeleted": "OAuth client {gone} deleted. Its tokens stop working everywhere within a second, " +
		"and nobody can sign in to it.",
	"clientsdeleted":  "OAuth clients deleted: {n}.",
	"upstreamadded":   "Upstream provider created. Try its button on the sign-in page.",
	"upstreamdeleted": "Upstream provider {gone} deleted. Its accounts are no longer linked with subscribers.",

	// Calls and rooms
	"hungup":        "Hang-up requested. The call ends within a second.",
	"callover":      "The call had already ended.",
	"movedin":       "Call moved into the room. Both sides are members there.",
	"movedout":      "Call moved out of the room. Both sides talk to each other again.",
	"moverefused":   "The call was not moved. Only an answered call between two can be moved.",
	"moveclosed":    "The call was not moved, because the room is not open now.",
	"movelocked":    "The call was not moved, because the room is locked.",
	"movefull":      "The call was not moved, because the room has no place for both sides.",
	"movecodec":     "The call was not moved, because a room cannot send the audio codec of one side.",
	"moveelsewhere": "The call was not moved, because another server has the room. Try again once it is empty.",
	"memberchanged": "The member is muted or unmuted within a second.",
	"memberremoved": "Removal requested. The member leaves within a second.",
	"memberleft":    "The member had already left.",
	"roomended":     "End requested. All members leave within a second.",
	"roomover":      "The room session had already ended.",

	// Recordings
	"stored":             "Recording uploaded.",
	"storeduntagged":     "The recording is stored, but without its tags. Enter them below.",
	"recordingdeleted":   "Recording deleted.",
	"recordingsdeleted":  "Recordings deleted: {n}.",
	"recordingsheld":     "Recordings put on hold: {n}.",
	"recordingsreleased": "Recordings released: {n}.",
	"ruleadded":          "Rule added. It applies within an hour.",
	"ruleremoved":        "Rule removed.",

	// Webhooks and mail
	"webhookadded":       "Webhook created. Send a test event to see whether it is received.",
	"webhookaddedtested": "Webhook created, and a test event queued. The answer appears below.",
	"webhooktested":      "Test event queued. The answer appears below.",
	"webhookdeleted":     "Webhook {gone} deleted, with its pending deliveries.",
	"redelivered":        "Queued again. The next attempt is under way.",
	"mailed":             "Test mail sent. Check whether it arrives.",
	"mailkept":           "No mail server is set, so the test mail was kept here. Open the mailbox to read it.",
	"mailretried":        "Queued again. The next attempt is under way.",

	// Backups and checks
	"backupbegan": "The backup has begun. Its result appears below.",
	"checkbegan":  "The check has begun. Its result appears below.",
}
