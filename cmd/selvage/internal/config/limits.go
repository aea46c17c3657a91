package config

// Limits holds the settings that limit what one caller, address or project may do. Each number is a
// maximum.
type Limits struct {
	// Open sockets to this server per subscriber or guest token; 0 for no limit.
	RelaySockets limit `key:"relay_sockets" default:"100"`
	// Open sockets per address that have not authenticated yet; 0 for no limit.
	RelayUnauthenticated limit `key:"relay_unauthenticated" default:"200"`
	// Guest tokens per embed key and minute, on all nodes together; 0 for no limit.
	EmbedTokens limit `key:"embed_tokens" default:"600"`
	// Sockets opened per minute with the guest tokens of one embed key, on all nodes together; 0 for
	// no limit.
	EmbedSockets limit `key:"embed_sockets" default:"600"`
	// Device codes entered from one address in ten minutes; 0 for no limit.
	DeviceCodes limit `key:"device_codes" default:"20"`

	// Failed passwords after which an account is throttled. Within an hour, two and a half times as
	// many are allowed in total. Each device that has signed in before is counted separately, with
	// the same limit. 0 for no limit.
	LoginPerAccount limit `key:"login_per_account" default:"10" reload:"true"`
	// Failed passwords from one address in 15 minutes; 0 for no limit.
	LoginPerNetwork limit `key:"login_per_network" default:"80" reload:"true"`
	// Failed passwords from one IPv6 /48 or IPv4 /24 in 15 minutes; 0 for no limit.
	LoginPerRange limit `key:"login_per_range" default:"400" reload:"true"`
	// Authorization requests, and requests for account pages without a login, from one address per
	// minute; 0 for no limit.
	AuthorizePerNetwork limit `key:"authorize_per_network" default:"1200" reload:"true"`
	// Token requests of a client from one address per minute; 0 for no limit.
	TokenPerClient limit `key:"token_per_client" default:"6000" reload:"true"`
	// OAuth clients of a project that registered themselves; 0 for no limit.
	RegisteredClients limit `key:"registered_clients" default:"1000"`
	// Registrations of people and of OAuth clients from one address per hour; 0 for no limit.
	RegisterPerNetwork limit `key:"register_per_network" default:"20" reload:"true"`
	// Emails per hour to one address requested without a login; 0 for no limit.
	MailPerAddress limit `key:"mail_per_address" default:"5" reload:"true"`
	// Emails per hour requested from one network address without a login; 0 for no limit.
	MailPerNetwork limit `key:"mail_per_network" default:"30" reload:"true"`
	// Requests per minute of an API key, a client or a token; 0 for no limit.
	APIRequests limit `key:"api_requests" default:"60000" reload:"true"`
	// Requests per minute with which an API key, a client or a token changes something; 0 for no
	// limit.
	APIWrites limit `key:"api_writes" default:"30000" reload:"true"`
	// Messages that a subscriber or guest may send per minute; 0 for no limit.
	Messages limit `key:"messages" default:"120" reload:"true"`
	// Messages per minute from all guests with tokens of one embed key; 0 for no limit.
	EmbedMessages limit `key:"embed_messages" default:"600" reload:"true"`
	// Wrong SIP credentials for a username from one address in ten minutes; 0 for no limit.
	SIPPerUser limit `key:"sip_per_user" default:"20" reload:"true"`
	// Wrong SIP credentials from one address in ten minutes; 0 for no limit.
	SIPPerNetwork limit `key:"sip_per_network" default:"100" reload:"true"`
	// Calls from one SIP gateway at a time, on each node; 0 for no limit.
	GatewayCalls limit `key:"gateway_calls" default:"200"`
	// Calls that one SIP gateway may begin per second, on each node, after a burst of ten times as
	// many; 0 for no limit.
	GatewayCallsPerSecond limit `key:"gateway_calls_per_second" default:"10"`
	// Calls of a subscriber through SIP gateways at a time; 0 for no limit.
	OutboundCalls limit `key:"outbound_calls" default:"2"`
	// Calls of a project through SIP gateways at a time; 0 for no limit.
	OutboundCallsPerProject limit `key:"outbound_calls_per_project" default:"20"`
	// Calls of a subscriber through SIP gateways within an hour; 0 for no limit.
	OutboundHourly limit `key:"outbound_hourly" default:"30"`
	// Calls of a project through SIP gateways within an hour; 0 for no limit.
	OutboundHourlyPerProject limit `key:"outbound_hourly_per_project" default:"200"`
	// Minutes that a subscriber may talk through SIP gateways within 24 hours; 0 for no limit.
	OutboundMinutes limit `key:"outbound_minutes" default:"120"`
	// Minutes that a project may talk through SIP gateways within 24 hours; 0 for no limit.
	OutboundMinutesPerProject limit `key:"outbound_minutes_per_project" default:"1440"`
	// Minutes after which a call through a SIP gateway ends; 0 for 4 hours, the limit of all calls.
	OutboundLongest limit `key:"outbound_longest" default:"60"`
	// Requests for unknown recordings from one address per minute; 0 for no limit.
	MediaMissesPerNetwork limit `key:"media_misses_per_network" default:"300" reload:"true"`
}
