package redis

import (
	"crypto/sha1"
	"encoding/hex"
)

// A script is a Lua script on one key. Servers cache it under its digest.
type script struct{ text, digest string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

// Scripts that read a value get prefix(key) as their first argument. They treat a value
// with another prefix as absent. Since each value has a prefix, no value is empty.
var (
	take = newScript(`
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then return '' end
redis.call('DEL', KEYS[1])
return value`)
	swap = newScript(`
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then return -1 end
if value ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1`)
	incr = newScript(`
local sum = redis.call('INCR', KEYS[1])
if sum == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return sum`)
	// The value is the time at which the rate has fully recovered, in microseconds of the server's
	// clock. It is an integer that a Lua number can hold.
	allow = newScript(`
local cost, slack, time = tonumber(ARGV[2]), tonumber(ARGV[3]), redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full, value = now, redis.call('GET', KEYS[1])
if value and string.sub(value, 1, #ARGV[1]) == ARGV[1] then
  full = math.max(now, tonumber(string.sub(value, #ARGV[1] + 1)) or now)
end
-- A key recovers within the slack, unless a clock was set back or the rate was changed.
if full > now + slack then full = now + slack - cost end
local next = full + cost
if cost > 0 and next - now > slack then return next - now - slack end
if next > now then
  local life = string.format('%.0f', math.ceil((next - now) / 1000))
  redis.call('SET', KEYS[1], ARGV[1] .. string.format('%.0f', next), 'PX', life)
elseif value then
  redis.call('DEL', KEYS[1])
end
return 0`)
)
