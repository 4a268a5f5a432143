package protocol

// CreateACLRequest is CreateAclRequestHeader, the header of AUTH_CREATE_ACL.
type CreateACLRequest struct {
	Subject string `ext:"subject"`
}

// Code returns 3006.
func (*CreateACLRequest) Code() RequestCode { return CodeAuthCreateACL }

// CreateUserRequest is CreateUserRequestHeader, the header of AUTH_CREATE_USER.
type CreateUserRequest struct {
	Username string `ext:"username"`
}

// Code returns 3001.
func (*CreateUserRequest) Code() RequestCode { return CodeAuthCreateUser }

// DeleteACLRequest is DeleteAclRequestHeader, the header of AUTH_DELETE_ACL.
type DeleteACLRequest struct {
	Subject    string `ext:"subject"`
	PolicyType string `ext:"policyType"`
	Resource   string `ext:"resource"`
}

// Code returns 3008.
func (*DeleteACLRequest) Code() RequestCode { return CodeAuthDeleteACL }

// DeleteUserRequest is DeleteUserRequestHeader, the header of AUTH_DELETE_USER.
type DeleteUserRequest struct {
	Username string `ext:"username"`
}

// Code returns 3003.
func (*DeleteUserRequest) Code() RequestCode { return CodeAuthDeleteUser }

// GetACLRequest is GetAclRequestHeader, the header of AUTH_GET_ACL.
type GetACLRequest struct {
	Subject string `ext:"subject"`
}

// Code returns 3009.
func (*GetACLRequest) Code() RequestCode { return CodeAuthGetACL }

// GetUserRequest is GetUserRequestHeader, the header of AUTH_GET_USER.
type GetUserRequest struct {
	Username string `ext:"username"`
}

// Code returns 3004.
func (*GetUserRequest) Code() RequestCode { return CodeAuthGetUser }

// ListACLsRequest is ListAclsRequestHeader, the header of AUTH_LIST_ACL.
type ListACLsRequest struct {
	SubjectFilter  string `ext:"subjectFilter"`
	ResourceFilter string `ext:"resourceFilter"`
}

// Code returns 3010.
func (*ListACLsRequest) Code() RequestCode { return CodeAuthListACL }

// ListUsersRequest is ListUsersRequestHeader, the header of AUTH_LIST_USER.
type ListUsersRequest struct {
	Filter string `ext:"filter"`
}

// Code returns 3005.
func (*ListUsersRequest) Code() RequestCode { return CodeAuthListUser }

// UpdateACLRequest is UpdateAclRequestHeader, the header of AUTH_UPDATE_ACL.
type UpdateACLRequest struct {
	Subject string `ext:"subject"`
}

// Code returns 3007.
func (*UpdateACLRequest) Code() RequestCode { return CodeAuthUpdateACL }

// UpdateUserRequest is UpdateUserRequestHeader, the header of AUTH_UPDATE_USER.
type UpdateUserRequest struct {
	Username string `ext:"username"`
}

// Code returns 3002.
func (*UpdateUserRequest) Code() RequestCode { return CodeAuthUpdateUser }
