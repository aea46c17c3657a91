package fabric

// Stores keep the rows of the fabric; one value may implement several.
//
// Each method is one transaction and safe for concurrent use. Find, Update and Delete
// return problem.NotFound for a row that is missing or belongs to another project. Lists
// are in order of creation.
//
// A method that takes a [revocation.Revocation] writes it in the same transaction. So does
// each change of a subscriber or resource with its [Event], once per webhook that wants it.
// The store makes the event only if there are such webhooks: by [SubscriberEvent] for
// subscribers, by a [Teller] for resources.
type Stores struct {
	Projects     ProjectStore
	APIKeys      APIKeyStore
	Audit        AuditStore
	Subscribers  SubscriberStore
	Logins       LoginStore
	Tokens       TokenStore
	EmbedKeys    EmbedKeyStore
	Applications ApplicationStore
	Resources    ResourceStore
	Routes       RouteStore
	Addresses    AddressStore
	SIP          SIPStore
	Webhooks     WebhookStore
	Deliveries   DeliveryStore
	Presence     PresenceStore
	Devices      DeviceStore
}
