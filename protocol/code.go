package protocol

// Response codes.
const (
	Success RequestStub = 0
)

// RequestStub is replaced by the owner of this file.
type RequestStub = ResponseCode
