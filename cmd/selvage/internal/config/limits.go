package config

// Limits holds the settings that limit what one caller, address or project may do. Each number is a
// maximum.
type Limits struct {
	// Open sockets of a subscriber or guest token on each node; 0 for no limit.
	RelaySockets limit `key:"relay_sockets" default:"100"`
	// Open sockets from one network that are not authenticated yet; 0 for no limit.
	RelayUnauthenticated limit `key:"relay_unauthenticated" default:"200"`
	// Guest tokens issued for an embed key per minute, on all nodes together; 0 for no limit.
	EmbedTokens limit `key:"embed_tokens" default:"600"`
	// Sockets opened with the guest tokens of an embed key per minute, on all nodes together; 0 for
	// no limit.
	EmbedSockets limit `key:"embed_sockets" default:"600"`
	// Device codes entered from one network in ten minutes; 0 for no limit.
	DeviceCodes limit `key:"device_codes" default:"20"`

	// Wrong passwords after which logins to an account are slowed down. In any hour, two and a half
	// times as many are permitted. Each device that has signed in before has a separate limit of
	// the same size. 0 for no limit.
	LoginPerAccount limit `key:"login_per_account" default:"10" reload:"true"`
	// Wrong passwords from one network in 15 minutes; 0 for no limit.
	LoginPerNetwork limit `key:"login_per_network" default:"80" reload:"true"`
	// Wrong passwords from one IPv6 /48 or IPv4 /24 in 15 minutes; 0 for no limit.
	LoginPerRange limit `key:"login_per_range" default:"400" reload:"true"`
	// Requests per minute from one network for authorization, or for account pages without a login;
	// 0 for no limit.
	AuthorizePerNetwork limit `key:"authorize_per_network" default:"1200" reload:"true"`
	// Token requests of a client per minute from one network; 0 for no limit.
	TokenPerClient limit `key:"token_per_client" default:"6000" reload:"true"`
	// OAuth clients that registered themselves, in one project; 0 for no limit.
	RegisteredClients limit `key:"registered_clients" default:"1000"`
	// Registrations of people and OAuth clients per hour from one network; 0 for no limit.
	RegisterPerNetwork limit `key:"register_per_network" default:"20" reload:"true"`
	// Emails per hour to one email address that were requested without a login; 0 for no limit.
	MailPerAddress limit `key:"mail_per_address" default:"5" reload:"true"`
	// Emails per hour that were requested from one network without a login; 0 for no limit.
	MailPerNetwork limit `key:"mail_per_network" default:"30" reload:"true"`
	// Requests per minute from an API key, a client or a token; 0 for no limit.
	APIRequests limit `key:"api_requests" default:"60000" reload:"true"`
	// Requests per minute that change something, from an API key, a client or a token; 0 for no
	// limit.
	APIWrites limit `key:"api_writes" default:"30000" reload:"true"`
	// Messages that a subscriber or guest may send per minute; 0 for no limit.
	Messages limit `key:"messages" default:"120" reload:"true"`
	// Messages per minute from all guests with tokens of an embed key; 0 for no limit.
	EmbedMessages limit `key:"embed_messages" default:"600" reload:"true"`
	// Wrong SIP credentials for a username from one network in ten minutes; 0 for no limit.
	SIPPerUser limit `key:"sip_per_user" default:"20" reload:"true"`
	// Wrong SIP credentials from one network in ten minutes; 0 for no limit.
	SIPPerNetwork limit `key:"sip_per_network" default:"100" reload:"true"`
	// Simultaneous calls from a SIP gateway on each node; 0 for no limit.
	GatewayCalls limit `key:"gateway_calls" default:"200"`
	// Calls that a SIP gateway can begin per second on each node, after a burst of ten times as
	// many; 0 for no limit.
	GatewayCallsPerSecond limit `key:"gateway_calls_per_second" default:"10"`
	// Simultaneous calls of a subscriber through SIP gateways; 0 for no limit.
	OutboundCalls limit `key:"outbound_calls" default:"2"`
	// Simultaneous calls of a project through SIP gateways; 0 for no limit.
	OutboundCallsPerProject limit `key:"outbound_calls_per_project" default:"20"`
	// Calls of a subscriber through SIP gateways within an hour; 0 for no limit.
	OutboundHourly limit `key:"outbound_hourly" default:"30"`
	// Calls of a project through SIP gateways within an hour; 0 for no limit.
	OutboundHourlyPerProject limit `key:"outbound_hourly_per_project" default:"200"`
	// Minutes that a subscriber may talk through SIP gateways within 24 hours; 0 for no limit.
	OutboundMinutes limit `key:"outbound_minutes" default:"120"`
	// Minutes that a project may talk through SIP gateways within 24 hours; 0 for no limit.
	OutboundMinutesPerProject limit `key:"outbound_minutes_per_project" default:"1440"`
	// Minutes after which a call through a SIP gateway ends; 0 for the limit of all calls, 4 hours.
	OutboundLongest limit `key:"outbound_longest" default:"60"`
	// Requests per minute for unknown recordings from one network; 0 for no limit.
	MediaMissesPerNetwork limit `key:"media_misses_per_network" default:"300" reload:"true"`
}
