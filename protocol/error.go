package protocol

import "fmt"

// Error is an answer other than success: the code a client gets, and a short remark.
type Error struct {
	Code   ResponseCode
	Remark string
}

// Error returns code and remark.
func (e *Error) Error() string { return fmt.Sprintf("code %d: %s", e.Code, e.Remark) }

// Errorf makes an *Error.
func Errorf(code ResponseCode, format string, args ...any) error {
	return &Error{Code: code, Remark: fmt.Sprintf(format, args...)}
}
