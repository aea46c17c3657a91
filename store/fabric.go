package store

import "github.com/selvage/selvage/fabric"

// Fabric returns the stores that package fabric needs.
func (s *Store) Fabric() fabric.Stores {
	return fabric.Stores{
		Projects:           s,
		APIKeys:            s,
		Audit:              s,
		Subscribers:        s,
		Logins:             s,
		Tokens:             s,
		EmbedKeys:          s,
		IngestKeys:         s,
		RegistrationTokens: s,
		Applications:       s,
		Resources:          s,
		Routes:             s,
		Addresses:          s,
		SIP:                s,
		Endpoints:          s,
		Gateways:           s,
		PhoneNumbers:       s,
		Webhooks:           s,
		Deliveries:         s,
		Presence:           s,
		Devices:            s,
	}
}
